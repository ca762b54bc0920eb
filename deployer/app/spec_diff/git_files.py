"""Spec files at a commit, written into a temporary folder. Nothing is checked out, and none of the files runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from deployer.app.spec_diff.git_repository import Repository
from deployer.errors import InvalidInput

# Specs, rules and configuration, and the program, which must exist and never runs.
_SUFFIXES = (".yaml", ".yml", ".py")
_FILES = ("100644", "100755")
_LINK = "120000"
_POLICIES = PurePosixPath("policies")  # a link or a submodule of that name would hide rules
_PROJECT_FILE = "Pulumi.yaml"
_MOST_FILES = 50_000
_MOST_BYTES = 512 * 1024**2  #: of all files together


@dataclass(frozen=True, slots=True)
class _Entry:
    """A file of a commit's tree."""

    mode: str
    blob: str
    size: int
    path: PurePosixPath


def extract_specs(repository: Repository, commit: str, project: Path, target: Path) -> None:
    """Writes the YAML, Python and SQL files that `project` had at `commit` into `target`, under the same paths.

    `project` is a folder of the work tree. Links are not followed. Raises InvalidInput for a link in the place of a
    file of specs or rules, for names that lead out of the project, and for more files than the limit.
    """
    wanted = [entry for entry in _listed(repository, commit, project) if _is_wanted(entry.path)]
    for entry in wanted:
        if entry.path == _POLICIES:
            raise InvalidInput(
                "is not a folder at that commit, and must hold the rules",
                where=entry.path,
                remedy="commit the rules themselves, into a folder of that name",
            )
        if entry.mode == _LINK:
            raise InvalidInput(
                "is a link at that commit, and --against does not follow links",
                where=entry.path,
                remedy="commit the file itself",
            )
        if entry.path.is_absolute() or any(_is_forbidden(part) for part in entry.path.parts):
            raise InvalidInput(  # Git refuses such trees too
                "is not a path inside the project", where=entry.path, remedy="remove it from the commit"
            )
    files = [entry for entry in wanted if entry.mode in _FILES]
    if len(files) > _MOST_FILES or sum(entry.size for entry in files) > _MOST_BYTES:
        raise InvalidInput(
            f"the project has more than {_MOST_FILES:,} files or {_MOST_BYTES // 1024**2} MiB of them at that commit",
            where=project,
            remedy="move files that are not specs out of the project's folder",
        )
    for entry, content in zip(files, _blobs(repository, files), strict=True):
        file = target / entry.path
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("xb") as sink:
            sink.write(content)


def projects_at(repository: Repository, commit: str) -> list[Path]:
    """Returns the folders of the work tree that have a `Pulumi.yaml` at `commit`, whether or not they exist now."""
    listed = repository.read(
        "ls-tree", "-r", "-z", "--full-tree", "--name-only", commit, otherwise="the commit cannot be read"
    )
    paths = [PurePosixPath(os.fsdecode(raw)) for raw in listed.split(b"\0") if raw]
    return [repository.top / path.parent for path in paths if path.name == _PROJECT_FILE]


def left_out(repository: Repository, commit: str, project: Path) -> list[PurePosixPath]:
    """Returns the links and submodules that `project` has at `commit`, as relative paths: `extract_specs` skips
    them."""
    return [entry.path for entry in _listed(repository, commit, project) if entry.mode not in _FILES]


def _listed(repository: Repository, commit: str, project: Path) -> list[_Entry]:
    """Returns the files, links and submodules that `project` has at `commit`, with paths relative to it."""
    prefix = project.relative_to(repository.top).as_posix()
    inside = () if prefix == "." else ("--", f"{prefix}/")
    listed = repository.read(
        *("ls-tree", "-r", "-z", "--long", "--full-tree", commit, *inside), otherwise="the commit cannot be read"
    )
    found = []
    for raw in filter(None, listed.split(b"\0")):
        about, _, name = raw.partition(b"\t")
        mode, _, blob, size = about.decode().split()
        path = os.fsdecode(name) if prefix == "." else os.fsdecode(name).removeprefix(f"{prefix}/")
        found.append(_Entry(mode, blob, int(size) if size.isdigit() else 0, PurePosixPath(path)))
    return found


def _is_wanted(path: PurePosixPath) -> bool:
    rule = path.suffix == ".sql" and path.parent == _POLICIES
    return path.suffix in _SUFFIXES or rule or path == _POLICIES


def _is_forbidden(part: str) -> bool:
    return part in ("..", ".") or part.casefold() == ".git"


def _blobs(repository: Repository, files: Sequence[_Entry]) -> list[bytes]:
    """Returns the contents of files, which one process of Git reads."""
    blobs = "".join(f"{file.blob}\n" for file in files).encode()
    answer = repository.read("cat-file", "--batch", otherwise="the commit's files cannot be read", given=blobs)
    found, at = [], 0
    for _ in files:
        end = answer.index(b"\n", at)
        head = answer[at:end].split()
        if len(head) != 3:
            raise InvalidInput(
                "this repository lacks a file of that commit", where=repository.top, remedy="fetch the whole commit"
            )
        size = int(head[2])
        found.append(answer[end + 1 : end + 1 + size])
        at = end + size + 2
    return found
