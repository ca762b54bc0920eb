"""Explains libyaml's errors to people who do not know its scanner."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml
from yaml.nodes import ScalarNode, SequenceNode

from deployer.errors import Position, Problem

MAX_DEPTH = 100

_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,4}|U[0-9a-fA-F]{0,8}|x[0-9a-fA-F]{0,2}|.)")
_HALF = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_PAIR = re.compile(r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")


class OverLimit(Exception):
    """A value exceeds a limit of files. Its arguments are the mark of the value (None for the start of the file), what
    exceeds the limit, and what to do."""


def syntax_problem(error: Exception, data: bytes, file: str) -> Problem:
    if isinstance(error, OverLimit):
        mark, what, remedy = error.args
        at = Position(file, mark.line + 1, mark.column + 1) if mark is not None else Position(file)
        return Problem(at, what, remedy, "yaml-limit")
    if isinstance(error, yaml.reader.ReaderError):
        before = data[: max(int(error.position), 0)]
        line = before.count(b"\n") + 1
        column = len(before.rsplit(b"\n", 1)[-1].decode(errors="replace")) + 1
        what = f"the file is not UTF-8 text: {error.reason}"
        return Problem(Position(file, line, column), what, "save it as UTF-8 without control characters", "yaml-syntax")
    assert isinstance(error, yaml.MarkedYAMLError)  # noqa: S101
    mark = error.problem_mark or error.context_mark
    if error.context == "while parsing a quoted scalar" and mark:
        return _bad_escape(str(error.problem), data.decode("utf-8-sig", errors="replace"), mark, file)
    if "quoted scalar" in (error.context or "") or (mark and mark.index >= len(data.decode(errors="replace").rstrip())):
        mark = error.context_mark or mark  # its start helps more than the file's end
    lines = data.decode(errors="replace").split("\n")
    line, column = (mark.line, mark.column) if mark else (0, 0)
    text = lines[line] if line < len(lines) else ""
    at = Position(file, line + 1, column + 1)
    return _explained(str(error.problem), error.context, text, at)


def _bad_escape(problem: str, text: str, mark: Any, file: str) -> Problem:
    """Returns the problem of an invalid escape in a double-quoted text. `mark` is libyaml's position: of the backslash
    for an unknown escape, else of the digits of the escape."""
    before = 0 if problem == "found unknown escape character" else 2
    start = mark.index - before
    at = Position(file, mark.line + 1, mark.column - before + 1)
    found = _ESCAPE.match(text, start)
    escape = found[0] if found else "\\"
    if not _HALF.fullmatch(escape):
        remedy = "write `\\\\` for a backslash, or put the text in single quotes"
        return Problem(at, f"`{escape}` is not an escape of YAML", remedy, "yaml-syntax")
    what = f"`{escape}` is half of a character, as JSON writes it, and YAML takes whole ones"
    if pair := _PAIR.match(text, start):
        whole = int(pair[1], 16) << 10 & 0xFFC00 | int(pair[2], 16) & 0x3FF
        return Problem(at, what, f"write `\\U{whole + 0x10000:08x}` for `{pair[0]}`, or the character", "yaml-syntax")
    return Problem(at, what, "write the whole character, or `\\U` and the 8 digits of its code", "yaml-syntax")


def _explained(problem: str, context: str | None, text: str, at: Position) -> Problem:
    """Returns the problem that explains one of libyaml's errors. `text` is the line at `at`."""
    head = text[: at.column - 1]
    rest = text[at.column - 1 :]
    if "tab" in problem or (problem.startswith("found character") and rest.startswith("\t")):
        return Problem(at, "a tab is used for indentation", "indent with spaces", "tab")
    if problem == "found undefined alias":
        name = re.match(r"\*([\w-]*)", rest)
        alias = name[1] if name else ""
        what = f"alias `*{alias}` has no anchor in front of it"
        return Problem(at, what, f"add `&{alias}` to a value above it in the same document", "unknown-alias")
    if problem.startswith("mapping values are not allowed"):
        if re.search(r":\s+\S", head):
            quoted = head.split(":", 1)[1].strip() + rest.rstrip()
            return Problem(at, "a second `:` in one line", f'quote the text: "{quoted}"', "yaml-syntax")
        return Problem(
            at, "a key is indented deeper than the one before it", "align it with its siblings", "yaml-syntax"
        )
    if problem.startswith("found character"):
        what = f"`{rest[:1]}` cannot start a value"
        return Problem(at, what, "quote the text", "yaml-syntax")
    if "flow" in (context or ""):
        what = "`[…]` or `{…}` is not closed, or holds text with brackets"
        return Problem(at, what, 'close it, or quote the text inside: {type: "timestamp[us, UTC]"}', "yaml-syntax")
    if "quoted scalar" in (context or ""):
        return Problem(at, "a quoted text is not closed", "add the closing quote", "yaml-syntax")
    where = f" {context}" if context else ""
    return Problem(at, f"this is not YAML: {problem}{where}", "fix the indentation or quote the text", "yaml-syntax")


def stray_tabs(text: str, roots: list[Any], file: str) -> Iterator[Problem]:
    """Yields the problem of the first tab that libyaml accepts as white space. Tabs in texts and comments are content,
    so they are allowed."""
    spans = sorted(_scalar_spans(roots))
    for found in re.finditer("\t", text):
        index = found.start()
        line_start = text.rfind("\n", 0, index) + 1
        if re.search(r"(^|\s)#", text[line_start:index]) or any(start <= index < end for start, end in spans):
            continue
        at = Position(file, text.count("\n", 0, index) + 1, index - line_start + 1)
        yield Problem(at, "a tab is used as white space", "use spaces", "tab")
        return  # the cause is one setting of an editor, so one problem is enough


def _scalar_spans(roots: list[Any]) -> Iterator[tuple[int, int]]:
    pending, seen = list(roots), set[int]()
    while pending:
        node = pending.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, ScalarNode):
            yield node.start_mark.index, node.end_mark.index
        elif isinstance(node, SequenceNode):
            pending += node.value
        else:
            pending += [part for pair in node.value for part in pair]
