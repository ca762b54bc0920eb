"""Removes whole documents from spec files, with the comments in them; all other lines stay."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

from deployer.errors import Position
from deployer.specs.editing.nodes import Uneditable

_SEPARATOR = re.compile(r"---(\s|$)")


def without_document(text: str, line: int) -> str:
    """Returns the text of a file without the document that holds `line`, counted from 1; empty when nothing else is in
    it."""
    lines = text.splitlines(keepends=True)
    starts = [number for number, each in enumerate(lines) if _SEPARATOR.match(each)]
    bounds = [0, *starts, len(lines)]
    parts = [lines[start:end] for start, end in pairwise(bounds)]
    kept, before = list[list[str]](), 0
    for part in parts:
        if not before < line <= before + len(part):
            kept.append(part)
        before += len(part)
    left = [each for part in kept for each in part]
    if kept and kept[0] is not parts[0] and left and left[0].strip() == "---":
        left = left[1:]  # the new first document needs no separator
    return "".join(left) if any(each.strip() not in ("", "---") for each in left) else ""


def remove_document(project: Path, at: Position) -> tuple[Path, str]:
    """Removes the document at this place from its file, and the file if it is then empty.

    Returns the file and its former content, for an undo.
    """
    path = project / at.file
    before = path.read_text(encoding="utf-8")
    after = without_document(before, at.line)
    if after == before:
        raise Uneditable("there is no document at this line", where=at, remedy="remove it by hand")
    if after:
        path.write_text(after, encoding="utf-8")
    else:
        path.unlink()
    return path, before
