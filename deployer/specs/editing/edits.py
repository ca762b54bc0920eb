"""Edits spec files in place: only changed lines are rewritten; comments, order and quotes stay.

A value that is declared elsewhere (an alias, a merge, a shared Schema, a variable) is not edited; `Uneditable` names
its origin.
"""

from __future__ import annotations

import difflib
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import YAMLError

from deployer.errors import Position
from deployer.specs.declarations.indexes import default_name
from deployer.specs.editing.nodes import (
    ColumnPath,
    Slot,
    Uneditable,
    anchor,
    as_node,
    column_slot,
    insert_named,
    named,
    order_named,
    put,
    refuse_shared,
    remove_item,
)
from deployer.specs.sources.variables import escaped


class SpecEdits:
    """Edits of the spec files of a project; `write` writes them to disk."""

    def __init__(self, project: Path) -> None:
        self.project = project
        self._files: dict[str, _File] = {}

    def set_property(self, at: Position, name: str, value: Any) -> None:
        """Sets a property of the document at this place, or removes it (None)."""
        put(self._declared(at), name, escaped(value), at)

    def set_column(self, at: Position, path: ColumnPath, name: str, value: Any) -> None:
        """Sets a property of a column, or of a field inside of it, of the document at this place; None removes it."""
        slot = self._slot(at, path)
        if name == "type":
            refuse_shared(slot.container, slot.key, slot.form, at)
            slot.container[slot.key] = as_node(escaped(value))
        else:
            put(slot.owned(), name, escaped(value), at)

    def text_above(self, at: Position, path: ColumnPath) -> ColumnPath | None:
        """Returns the column or field, at `path` or above it, whose type is one text, so that its fields have no place
        of their own."""
        slot: Slot | None = column_slot(self._column(at, path[0]))
        for depth, name in enumerate((*path[1:], ""), 1):
            if slot is None or not isinstance(slot.form, Mapping):
                return path[:depth]
            slot = slot.part(escaped(name)) if name else None
        return None

    def add_column(self, at: Position, parent: ColumnPath, column: Mapping[str, Any], after: str | None) -> None:
        """Adds a column, or a field of the struct `parent`: behind `after`, first when that is None."""
        if not parent and self._declared(at).get("columns") is None:
            self._declared(at)["columns"] = CommentedSeq()
        insert_named(self._columns(at, parent), escaped(column), escaped(after))

    def drop_column(self, at: Position, path: ColumnPath) -> None:
        """Removes a column or field."""
        items = self._columns(at, path[:-1])
        remove_item(items, self._column(at, path[0]) if len(path) == 1 else named(items, escaped(path[-1])))

    def order_columns(self, at: Position, parent: ColumnPath, names: Sequence[str]) -> None:
        """Brings columns, or the fields of the struct `parent`, in this order; all must be in this document."""
        order_named(self._columns(at, parent), escaped(names), at)

    def rename_in_list(self, at: Position, name: str, before: str, after: str) -> None:
        """Writes `after` for `before` in a list of names, such as `row_keys`."""
        declared = self._declared(at)
        refuse_shared(declared, name, declared.get(name), at)
        for index, value in enumerate(declared.get(name) or ()):
            if value == escaped(before):
                declared[name][index] = escaped(after)

    def set_index(self, at: Position, name: str, form: Mapping[str, Any] | None) -> None:
        """Adds the index of that name to the document at this place, changes it, or removes it (None)."""
        declared, name, form = self._declared(at), escaped(name), escaped(form)
        items = declared.get("indexes")
        if items is None:
            put(declared, "indexes", [_index_form(form)] if form else None, at)
            return
        refuse_shared(declared, "indexes", items, at)
        found = next((item for item in items if _index_name(item) == name), None)
        if form is None:
            if found is None:
                raise Uneditable(f"index {name} is not declared here", where=at, remedy="edit it by hand")
            remove_item(items, found)
            if not items:
                put(declared, "indexes", None, at)
        elif found is None:
            insert_named(items, _index_form(form), after="")
        else:
            wanted = _index_form(form) | ({"name": form["name"]} if "name" in found else {})
            for key in [key for key in found if key not in wanted]:
                put(found, key, None, at)
            for key, value in wanted.items():
                if found.get(key) != value:
                    put(found, key, value, at)

    def set_service(self, at: Position, name: str, form: Mapping[str, Any] | None) -> None:
        """Adds the service of that name to the document at this place, changes it, or removes it (None)."""
        declared = self._declared(at)
        services = declared.get("services")
        if form is None and name not in (services or ()):
            raise Uneditable(f"service {name} is not declared here", where=at, remedy="edit it by hand")
        if services is None:
            put(declared, "services", {name: escaped(form)} if form else None, at)
            return
        refuse_shared(declared, "services", services, at)
        put(services, name, escaped(form), at)
        if not services:
            put(declared, "services", None, at)

    def move_overlays(self, files: Iterable[str], before: str, after: str) -> None:
        """Changes the target of all overlays in `files`, for every stack, from the address `before` to `after`."""
        for name in files:
            if name not in self._files:
                path = self.project / name
                if before not in path.read_text(encoding="utf-8"):  # most files have no overlay of it
                    continue
                self._files[name] = _File(path)
            for document in self._files[name].documents:
                if isinstance(document, CommentedMap) and (document.get("kind"), document.get("target")) == (
                    "Overlay",
                    before,
                ):
                    document["target"] = after

    def write(self) -> Mapping[Path, str]:
        """Writes every changed file; returns the former contents, by path."""
        before = {}
        for file in self._files.values():
            text = file.text()
            if text != file.before:
                before[file.path] = file.before
                file.path.write_text(text, encoding="utf-8")
        return before

    def _declared(self, at: Position) -> Any:
        """Returns the mapping that holds the declared properties: the document, or the `set` of an overlay."""
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

    def _columns(self, at: Position, parent: ColumnPath) -> Any:
        """Returns the list of columns, or of the fields of a struct in its long form."""
        if not parent:
            declared = self._declared(at)
            refuse_shared(declared, "columns", declared.get("columns"), at)
            return declared["columns"]
        form = self._slot(at, parent).form
        if not isinstance(form, Mapping) or "struct" not in form:
            raise Uneditable(f"{'.'.join(parent)} is not a struct here", where=at, remedy="edit it by hand")
        refuse_shared(form, "struct", form["struct"], at)
        return form["struct"]

    def _slot(self, at: Position, path: ColumnPath) -> Slot:
        slot: Slot | None = column_slot(self._column(at, path[0]))
        for name in path[1:]:
            slot = slot.part(escaped(name)) if slot is not None else None
        if slot is None:
            raise Uneditable(f"{'.'.join(path)} has no place of its own", where=at, remedy="edit it by hand")
        return slot

    def _column(self, at: Position, name: str) -> Any:
        columns = self._declared(at).get("columns") or ()
        found = next((item for item in columns if item.get("name") == escaped(name)), None)
        if found is None:
            raise Uneditable(f"column {name} is not declared here", where=at, remedy="edit it by hand")
        if anchor(found) or not at.line - 1 >= found.lc.line:
            raise Uneditable(f"column {name} is shared by an anchor or alias", where=at, remedy="edit it by hand")
        return found


def _index_name(item: Mapping[str, Any]) -> str:
    return str(item.get("name") or default_name(item["columns"], item["kind"]))


def _index_form(form: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an index as people write it: its name is last, and only included where it is not the default name."""
    kind, columns = form["kind"], form["columns"]
    own_name = {} if form["name"] == default_name(columns, kind) else {"name": form["name"]}
    return {"kind": kind, "columns": columns} | {k: v for k, v in form.items() if k != "name"} | own_name


class _File:
    """One file as ruamel's documents, and its text on disk."""

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
        """Returns the document that holds a line, counted from 1."""
        found = [each for each in self.documents if isinstance(each, CommentedMap) and each.lc.line <= line - 1]
        if not found:
            raise Uneditable("there is no document at this line", where=f"{self.path}:{line}", remedy="edit it by hand")
        return found[-1]

    def text(self) -> str:
        """Returns the file with the changed lines; all other lines are unchanged."""
        dumped = self._dump()
        if dumped == self.dumped:
            return self.before
        own, old, new = (text.splitlines(keepends=True) for text in (self.before, self.dumped, dumped))
        if len(own) != len(old):
            return dumped
        lines: list[str] = []
        matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
        spaced = any(line.lstrip().startswith("- { ") for line in own)
        for tag, start, end, new_start, new_end in matcher.get_opcodes():
            written = new[new_start:new_end]
            lines += own[start:end] if tag == "equal" else map(_spaced, written) if spaced else written
        return "".join(lines)

    def _dump(self) -> str:
        stream = io.StringIO()
        for index, document in enumerate(self.documents):
            part = io.StringIO()
            self.yaml.dump(document, part)
            starts = index > 0 or self.before.startswith("---")
            stream.write(("---\n" if starts else "") + part.getvalue())
        return stream.getvalue()


def _spaced(line: str) -> str:
    """Returns a line `- {…}` with spaces inside of the braces, which ruamel omits."""
    return re.sub(r"^(\s*- \{)(\S[^#]*\S)(\}\s*(?:#[^}]*)?)$", r"\1 \2 \3", line)


def _indents_lists(text: str) -> bool:
    """Returns whether `- ` is indented deeper than the key of the list, as in most files."""
    previous = ""
    for line in text.splitlines():
        stripped = line.lstrip()
        if stripped.startswith("- ") and previous.rstrip().endswith(":"):
            return len(line) - len(stripped) > len(previous) - len(previous.lstrip())
        if stripped and not stripped.startswith("#"):
            previous = line
    return True
