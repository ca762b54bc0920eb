"""Edits spec files in place: only the lines of what changes are written anew, and comments, order and quotes stay.

A value that is declared elsewhere (an alias, a merge, a shared Schema, a variable) is not edited; `Uneditable` says
where it comes from.
"""

from __future__ import annotations

import difflib
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import YAMLError

from deployer.errors import DeployerError, Position


class Uneditable(DeployerError):
    """What is to be changed is declared in a way that no edit in place can change alone."""


class SpecEdits:
    """Edits of the spec files of a project; nothing is on disk before `write`."""

    def __init__(self, project: Path) -> None:
        self.project = project
        self._files: dict[str, _File] = {}

    def set_property(self, at: Position, name: str, value: Any) -> None:
        """Sets a property of the document at this place, or removes it (None)."""
        _put(self._declared(at), name, value, at)

    def set_column(self, at: Position, column: str, name: str, value: Any) -> None:
        """Sets a property of a column of the document at this place, or removes it (None)."""
        _put(self._column(at, column), name, value, at)

    def add_column(self, at: Position, column: Mapping[str, Any], after: str | None) -> None:
        """Adds a column to the document at this place: behind the column `after`, first when that is None."""
        declared = self._declared(at)
        columns = declared.get("columns")
        if columns is None:
            declared["columns"] = columns = CommentedSeq()
        _refuse_shared(declared, "columns", columns, at)
        names = [item.get("name") for item in columns]
        place = names.index(after) + 1 if after in names else 0 if after is None else len(names)
        item = CommentedMap(column)
        if any(isinstance(other, CommentedMap) and other.fa.flow_style() for other in columns):
            item.fa.set_flow_style()
        if 0 < place == len(names):
            _move_comment(columns[place - 1], item)
        columns.insert(place, item)

    def drop_column(self, at: Position, column: str) -> None:
        """Removes a column from the document at this place."""
        declared = self._declared(at)
        _refuse_shared(declared, "columns", declared.get("columns"), at)
        columns, found = declared["columns"], self._column(at, column)
        place = columns.index(found)
        if place:
            _move_comment(found, columns[place - 1])
        del columns[place]

    def order_columns(self, at: Position, names: Sequence[str]) -> None:
        """Brings the columns of the document at this place in this order; all of them must be its own."""
        declared = self._declared(at)
        columns: Any = declared.get("columns") or CommentedSeq()
        if {item.get("name") for item in columns} != set(names):
            raise Uneditable("the columns come from several documents", where=at, remedy="reorder them by hand")
        _refuse_shared(declared, "columns", columns, at)
        items = {item["name"]: item for item in columns}
        for index, name in enumerate(names):
            columns[index] = items[name]

    def write(self) -> Mapping[Path, str]:
        """Writes every file that changed; gives what was there before, by path."""
        before = {}
        for file in self._files.values():
            text = file.text()
            if text != file.before:
                before[file.path] = file.before
                file.path.write_text(text, encoding="utf-8")
        return before

    def _declared(self, at: Position) -> Any:
        """The mapping that holds the declared properties: the document, or the `set` of an overlay."""
        if at.file not in self._files:
            self._files[at.file] = _File(self.project / at.file)
        document = self._files[at.file].document(at.line)
        if document.get("kind") == "Schema":
            raise Uneditable(
                f"it is declared in schema {document.get('name')}, which others may share",
                where=at,
                remedy="edit the schema, or move the column into the table",
            )
        return document["set"] if document.get("kind") == "Overlay" else document

    def _column(self, at: Position, name: str) -> Any:
        columns = self._declared(at).get("columns") or ()
        found = next((item for item in columns if item.get("name") == name), None)
        if found is None:
            raise Uneditable(f"column {name} is not declared here", where=at, remedy="edit it by hand")
        if _anchor(found) or not at.line - 1 >= found.lc.line:
            raise Uneditable(f"column {name} is shared by an anchor or alias", where=at, remedy="edit it by hand")
        return found


class _File:
    """One file as ruamel's documents, and the text that is on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.before = path.read_text(encoding="utf-8")
        self.yaml = YAML(typ="rt")
        self.yaml.preserve_quotes = True
        self.yaml.width = 10_000
        self.yaml.indent(mapping=2, sequence=4, offset=2)
        if not _indents_lists(self.before):
            self.yaml.indent(mapping=2, sequence=2, offset=0)
        try:
            self.documents = [each for each in self.yaml.load_all(self.before) if each is not None]
        except YAMLError:
            raise Uneditable("it cannot be edited", where=path, remedy="edit it by hand") from None
        self.dumped = self._dump()

    def document(self, line: int) -> Any:
        """The document that holds a line, counted from 1."""
        found = [each for each in self.documents if isinstance(each, CommentedMap) and each.lc.line <= line - 1]
        if not found:
            raise Uneditable("there is no document at this line", where=f"{self.path}:{line}", remedy="edit it by hand")
        return found[-1]

    def text(self) -> str:
        """The file with the lines of what changed, and every other line as it was."""
        dumped = self._dump()
        if dumped == self.dumped:
            return self.before
        own, old, new = (text.splitlines(keepends=True) for text in (self.before, self.dumped, dumped))
        if len(own) != len(old):
            return dumped
        lines: list[str] = []
        matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
        for tag, start, end, new_start, new_end in matcher.get_opcodes():
            lines += own[start:end] if tag == "equal" else new[new_start:new_end]
        return "".join(lines)

    def _dump(self) -> str:
        stream = io.StringIO()
        for index, document in enumerate(self.documents):
            part = io.StringIO()
            self.yaml.dump(document, part)
            starts = index > 0 or self.before.startswith("---")
            stream.write(("---\n" if starts else "") + part.getvalue())
        return stream.getvalue()


def _indents_lists(text: str) -> bool:
    """Whether `- ` stands further in than the key of the list, as in most files."""
    previous = ""
    for line in text.splitlines():
        stripped = line.lstrip()
        if stripped.startswith("- ") and previous.rstrip().endswith(":"):
            return len(line) - len(stripped) > len(previous) - len(previous.lstrip())
        if stripped and not stripped.startswith("#"):
            previous = line
    return True


def _put(mapping: Any, name: str, value: Any, at: Position) -> None:
    if name in mapping:
        _refuse_shared(mapping, name, mapping[name], at)
    if value is None:
        _remove(mapping, name)
    elif name in mapping and isinstance(value, Mapping) and isinstance(mapping[name], CommentedMap):
        for key in [key for key in mapping[name] if key not in value]:
            _remove(mapping[name], key)
        for key, item in value.items():
            if mapping[name].get(key) != item:
                _put(mapping[name], key, item, at)
    elif name not in mapping and isinstance(mapping, CommentedMap) and len(mapping):
        last = list(mapping)[-1]
        _append(mapping, last, name, value)
    else:
        mapping[name] = value


def _remove(mapping: Any, name: str) -> None:
    """Removes a property; empty lines and comments below it stay, behind the one before it."""
    names = list(mapping)
    if name not in names:
        return
    place = names.index(name)
    comment = mapping.ca.items.get(name)
    del mapping[name]
    before = names[place - 1] if place else None
    if not comment or not _is_below(comment) or before is None:
        return
    own = mapping.ca.items.get(before)
    if own is None:
        mapping.ca.items[before] = comment
    elif len(own) > 2 and own[2] is not None and str(own[2].value).endswith("\n"):
        own[2].value += comment[2].value.removeprefix("\n")


def _append(mapping: CommentedMap, last: str, name: str, value: Any) -> None:
    """Adds a property at the end; what stands behind the last one (comments, empty lines) stays behind."""
    comment = mapping.ca.items.pop(last, None) if not isinstance(mapping[last], CommentedMap | CommentedSeq) else None
    mapping[name] = value
    if comment is not None:
        mapping.ca.items[name if _is_below(comment) else last] = comment


def _is_below(comment: Sequence[Any]) -> bool:
    """Whether a comment starts on a line of its own, and so is not about the value before it."""
    token = comment[2] if len(comment) > 2 else None
    return token is not None and str(token.value).startswith("\n")


def _move_comment(source: Any, target: Any) -> None:
    """What stands on lines of its own behind a column moves behind another: lists keep what follows them."""
    columns = (source, target)
    if not all(isinstance(each, CommentedMap) and each and not each.fa.flow_style() for each in columns):
        return
    last, behind = list(source)[-1], list(target)[-1]
    comment = source.ca.items.get(last)
    if comment is not None and _is_below(comment) and behind not in target.ca.items:
        target.ca.items[behind] = source.ca.items.pop(last)


def _refuse_shared(mapping: Any, name: str, value: Any, at: Position) -> None:
    if isinstance(mapping, CommentedMap) and name not in dict(mapping.non_merged_items()):
        raise Uneditable(f"`{name}` is merged from an alias (<<)", where=at, remedy="edit it by hand")
    if _anchor(value):
        raise Uneditable(f"`{name}` comes from the anchor &{_anchor(value)}", where=at, remedy="edit it by hand")
    if isinstance(value, str) and "${" in value:
        raise Uneditable(f"`{name}` comes from a variable: {value}", where=at, remedy="edit the variable by hand")


def _anchor(value: Any) -> str | None:
    anchor = getattr(value, "anchor", None)
    return getattr(anchor, "value", None)
