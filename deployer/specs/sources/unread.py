"""Spec files in the folder of the specs that are not read, such as files of a subfolder that no file includes."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from deployer.platform.files.reading import read_limited
from deployer.specs.schema.document import KINDS
from deployer.specs.sources.files import SUFFIXES
from deployer.specs.sources.include_paths import LeadsOut, matching_files
from deployer.specs.yaml.nodes import MAX_BYTES, parse_yaml

MOST_FOLDERS = 10_000  #: the search stops after this number of folders
_KIND = re.compile(rb"^kind:[ \t]*[\"']?(\w+)", re.MULTILINE)
_INCLUDE = re.compile(rb"^include:", re.MULTILINE)
_NOT_SPECS = ("policies", "node_modules", "__pycache__")


def unread_files(project: Path, specs: Path, read: Collection[str]) -> list[str]:
    """Returns the spec files below the folder of `specs` that are not in `read`, relative to the project and sorted.

    `specs` is the file or folder that the stack names. `read` has paths without links, relative to the project, as in
    `Lake.files`. The result omits files without a `kind:` of specs, hidden files and folders, `policies`, Pulumi's own
    files, and files that some stack includes. It also omits folders with an Instance, which are the specs of another
    lake. The result is empty where `specs` is a single file directly in the project's folder.
    """
    project = Path(os.path.realpath(project))
    top = specs if specs.is_dir() else specs.parent
    top = Path(os.path.realpath(top))
    if not top.is_relative_to(project) or (top == project and not specs.is_dir()):
        return []
    known = {os.path.join(project, name) for name in read}  # noqa: PTH118 (there are thousands, as below)
    found = dict(_spec_files(top, known))
    if not found:
        return []
    others = {path.parent for path, data in found.items() if b"Instance" in _KIND.findall(data)}
    included = _included(project, map(Path, known))
    return sorted(
        path.relative_to(project).as_posix()
        for path in found
        if path not in included and not any(path.is_relative_to(folder) for folder in others)
    )


def _spec_files(top: Path, known: Collection[str]) -> Iterator[tuple[Path, bytes]]:
    """Yields the path and content of each file below `top` that has a `kind:` of specs and is not in `known`."""
    for number, (folder, folders, names) in enumerate(os.walk(top)):
        if number >= MOST_FOLDERS:
            return
        folders[:] = [each for each in folders if not each.startswith(".") and each not in _NOT_SPECS]
        for name in names:
            if not name.endswith(SUFFIXES) or name.startswith((".", "Pulumi.")):
                continue
            path = os.path.join(folder, name)  # noqa: PTH118
            if path in known or os.path.islink(path):  # noqa: PTH114
                continue
            data = _content(Path(path))
            if any(each.decode() in KINDS for each in _KIND.findall(data)):
                yield Path(path), data


def _included(project: Path, known: Iterable[Path]) -> set[Path]:
    """Returns all files that the known files include, directly or through other files, for any stack."""
    found, waiting = set[Path](), list(known)
    while waiting:
        path = waiting.pop()
        data = _content(path)
        for pattern in _includes(data, path) if _INCLUDE.search(data) else ():
            try:
                files = matching_files(path.parent, pattern, lambda each: each.is_relative_to(project))
            except (LeadsOut, ValueError):  # the reader of the specs reports this problem
                continue
            new = {Path(os.path.realpath(each)) for each in files} - found
            found |= new
            waiting += sorted(new)
    return found


def _includes(data: bytes, path: Path) -> Sequence[str]:
    found: list[str] = []
    for document in parse_yaml(data, path.name).documents:
        include = document.value.get("include") if isinstance(document.value, dict) else None
        if include is not None and isinstance(include.value, list):
            found += [str(each.value) for each in include.value]
    return found


def _content(path: Path) -> bytes:
    try:
        return read_limited(path, MAX_BYTES)
    except OSError:
        return b""
