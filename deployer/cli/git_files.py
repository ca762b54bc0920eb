"""Spec files as they are at a Git ref, in a folder of their own. Nothing is checked out, and nothing runs here."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path, PurePosixPath

from deployer.errors import InvalidInput, NotFound

# Specs and rules, configuration, and the program, which must be there and never runs.
_SUFFIXES = (".yaml", ".yml", ".py")
_FILES = ("100644", "100755")
_LINK = "120000"
_POLICIES = PurePosixPath("policies")  # a link or a submodule of that name would hide rules


def resolve_ref(folder: Path, ref: str) -> str:
    """The commit that `ref` names. Raises InvalidInput outside a repository, NotFound for a ref that is not there."""
    _git(folder, "rev-parse", "--git-dir", otherwise="--against needs a Git repository, and this folder is in none")
    if ref and "\0" not in ref:
        found = _run(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
        if found.returncode == 0:
            return found.stdout.decode().strip()
    raise NotFound(
        f"there is no commit {ref!r} in this repository",
        where=folder,
        remedy="give a branch, a tag or a commit; in a shallow clone, fetch it first: git fetch origin BRANCH",
    )


def extract_specs(folder: Path, commit: str, target: Path) -> None:
    """Writes the YAML, Python and SQL files that `folder` had at `commit` into `target`, under the same relative paths.

    Links are not followed: one at a place where a file of specs or rules would be is an InvalidInput.
    """
    prefix = (
        _git(folder, "rev-parse", "--show-prefix", otherwise="this is no folder of a work tree").decode().rstrip("\n")
    )
    inside = ("--", prefix) if prefix else ()
    listed = _git(folder, "ls-tree", "-r", "-z", "--full-tree", commit, *inside, otherwise="the commit cannot be read")
    wanted: list[tuple[str, PurePosixPath]] = []
    for entry in filter(None, listed.split(b"\0")):
        about, _, raw = entry.partition(b"\t")
        mode, _, blob = about.decode().split()
        path = PurePosixPath(os.fsdecode(raw).removeprefix(prefix))
        if not _is_wanted(path):
            continue
        if path == _POLICIES:
            raise InvalidInput(
                "is no folder at that commit, and rules have to be there",
                where=path,
                remedy="commit the rules themselves, into a folder of that name",
            )
        if mode == _LINK:
            raise InvalidInput(
                "is a link at that commit, and --against follows none", where=path, remedy="commit the file itself"
            )
        if mode in _FILES:
            wanted.append((blob, path))
    for (_, path), content in zip(wanted, _blobs(folder, [blob for blob, _ in wanted]), strict=True):
        file = target / path
        if path.is_absolute() or ".." in path.parts:  # Git refuses such trees; so do we
            raise InvalidInput("is no path inside the project", where=path, remedy="remove it from the commit")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def _is_wanted(path: PurePosixPath) -> bool:
    rule = path.suffix == ".sql" and path.parent == _POLICIES
    return path.suffix in _SUFFIXES or rule or path == _POLICIES


def _blobs(folder: Path, ids: list[str]) -> list[bytes]:
    """The contents of blobs, in one process."""
    asked = "".join(f"{blob}\n" for blob in ids).encode()
    answer = _git(folder, "cat-file", "--batch", otherwise="the commit's files cannot be read", given=asked)
    found, at = [], 0
    for _ in ids:
        end = answer.index(b"\n", at)
        head = answer[at:end].split()
        if len(head) != 3:
            raise InvalidInput("a file of that commit is not here", where=folder, remedy="fetch the whole commit")
        size = int(head[2])
        found.append(answer[end + 1 : end + 1 + size])
        at = end + size + 2
    return found


def _git(folder: Path, *arguments: str, otherwise: str, given: bytes = b"") -> bytes:
    ended = _run(folder, *arguments, given=given)
    if ended.returncode:
        said = ended.stderr.decode(errors="replace").strip().splitlines()
        raise InvalidInput(
            f"{otherwise}{f' ({said[0]})' if said else ''}",
            where=folder,
            remedy="run it in a clone that has the commit",
        )
    return ended.stdout


def _run(folder: Path, *arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(["git", "-C", str(folder), *arguments], input=given, capture_output=True, check=False)  # noqa: S607
    except FileNotFoundError:
        raise InvalidInput("git is not installed", where="--against", remedy="install git") from None
