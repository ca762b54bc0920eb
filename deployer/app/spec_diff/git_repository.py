"""The Git repository around a project, found and read so that no file of a branch decides the result.

A branch may contain anything: the files of a bare repository, a submodule, a program called `git`. So the repository is
the one whose `.git` is in the project's folder or above, because Git never checks out an entry of that name. Git gets
its path, and reads only the configuration of that repository, which the checkout wrote. Only commands that read objects
run: they use no hook, filter, attribute, pager or transport.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from deployer.errors import InvalidInput, NotFound

_ENTRY = ".git"
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_LONGEST = 4096  #: bytes that are read of the file `.git` of a linked work tree
_CONFIG = {
    "safe.bareRepository": "explicit",
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.attributesFile": os.devnull,
    "core.warnAmbiguousRefs": "true",
    "protocol.allow": "never",
}
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_COUNT": str(len(_CONFIG)),
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_GRAFT_FILE": os.devnull,
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository: `top` is the work tree's folder, `git_dir` contains its objects or names their place."""

    top: Path
    git_dir: Path

    def resolve(self, ref: str) -> str:
        """Returns the id of the commit that `ref` names.

        Raises NotFound for an unknown ref, InvalidInput for a name that several refs have.
        """
        # A name with a colon means a file, or a search in messages; authors of commits decide both.
        if ref and ref.isprintable() and ":" not in ref:
            found = self._run("rev-parse", "--verify", "--end-of-options", f"{ref}^{{commit}}")
            if b"is ambiguous" in found.stderr:
                raise InvalidInput(
                    f"more than one branch, tag or commit is called {ref!r}",
                    where=self.top,
                    remedy="write its full name, such as refs/remotes/origin/main",
                )
            commit = found.stdout.decode(errors="replace").strip()
            if found.returncode == 0 and _COMMIT.fullmatch(commit):
                return commit
        raise NotFound(
            f"there is no commit {ref!r} in this repository",
            where=self.top,
            remedy="give a branch, a tag or a commit; in a shallow clone, fetch it first: git fetch origin BRANCH",
        )

    def read(self, *arguments: str, otherwise: str, given: bytes = b"") -> bytes:
        """Returns the output of a command that reads objects. Raises InvalidInput, with `otherwise`, when it fails."""
        ended = self._run(*arguments, given=given)
        if ended.returncode:
            printed = ended.stderr.decode(errors="replace").strip().splitlines()
            raise InvalidInput(
                f"{otherwise}{f' ({printed[0]})' if printed else ''}",
                where=self.top,
                remedy="run the command in a clone that has the commit",
            )
        return ended.stdout

    def holds(self, folder: Path) -> bool:
        """Returns whether the checked-out commit has `folder`, as files or as a submodule."""
        inside = folder.relative_to(self.top).as_posix()
        return bool(self._run("ls-tree", "--full-tree", "HEAD", "--", inside).stdout)

    def _run(self, *arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        where = (f"--git-dir={self.git_dir}", f"--work-tree={self.top}")
        return subprocess.run(
            [_program(self.top), "--no-pager", *where, *arguments],
            input=given,
            capture_output=True,
            check=False,
            cwd="/",
            env=_environment(os.environ),
        )


def find_repository(folder: Path) -> Repository:
    """Returns the repository whose work tree contains `folder`.

    Raises InvalidInput where there is none, and for a repository that a branch could have put there: a submodule, a Git
    folder among the files of a work tree, or a folder of another repository. Also raises InvalidInput for a repository
    that belongs neither to this user nor to the owner of `folder`.
    """
    folder = folder.resolve()
    tops = [place for place in (folder, *folder.parents) if os.path.lexists(place / _ENTRY)]
    if not tops:
        raise InvalidInput(
            "--against needs a Git repository, and this folder is not in one",
            where=folder,
            remedy="run the command in a clone of the project's repository",
        )
    top, git_dir = tops[0], _git_dir(tops[0])
    for place in git_dir.parents if git_dir != top / _ENTRY else ():
        own = place / _ENTRY if place == top else _outer_git_dir(place)
        if own is not None and not git_dir.is_relative_to(own):
            raise _untrusted(top, f"its Git folder {git_dir} lies among the files of the work tree {place}")
    for place in tops[1:]:
        if (outer := _outer_git_dir(place)) and Repository(place, outer).holds(top):
            raise _untrusted(top, f"it lies in a folder that the repository at {place} holds too")
    if _owner(git_dir) not in {0, os.geteuid(), _owner(folder)}:
        raise _untrusted(top, f"its Git folder {git_dir} belongs to another user")
    return Repository(top, git_dir)


def _outer_git_dir(place: Path) -> Path | None:
    """Returns the Git folder of a surrounding work tree; None where there is no work tree that Git could read."""
    try:
        return _git_dir(place) if os.path.lexists(place / _ENTRY) else None
    except InvalidInput:
        return None


def _git_dir(top: Path) -> Path:
    """Returns the folder that `.git` is or refers to."""
    entry = top / _ENTRY
    if entry.is_dir():
        return entry.resolve()
    try:
        text = entry.read_bytes()[:_LONGEST] if entry.is_file() else b""
    except OSError:
        text = b""
    named = os.fsdecode(text.removeprefix(b"gitdir:").strip())
    git_dir = Path(os.path.realpath(top / named)) if text.startswith(b"gitdir:") and "\0" not in named else None
    if git_dir is None or not git_dir.is_dir():
        raise InvalidInput(f"the file {_ENTRY} names no Git folder", where=entry, remedy="clone the repository again")
    outer = next((place for place in git_dir.parents if _is_git_dir(place)), None)
    if outer is not None and not _is_linked(git_dir, entry, outer):
        raise _untrusted(top, f"it is a submodule of the repository at {outer}, whose branches choose what it holds")
    return git_dir


def _is_git_dir(folder: Path) -> bool:
    return (folder / "HEAD").exists() and (folder / "objects").is_dir() and (folder / "refs").is_dir()


def _is_linked(git_dir: Path, entry: Path, common: Path) -> bool:
    """Returns whether `git_dir` belongs to a work tree of `git worktree add`: it then refers back to the work tree."""
    try:
        named = (git_dir / "gitdir").read_bytes()[:_LONGEST].strip()
        shared = (git_dir / "commondir").read_bytes()[:_LONGEST].strip()
    except OSError:
        return False
    back, to = Path(os.path.realpath(git_dir / os.fsdecode(named))), os.path.realpath(git_dir / os.fsdecode(shared))
    return git_dir.parent == common / "worktrees" and back == entry.resolve() and Path(to) == common


def _untrusted(top: Path, why: str) -> InvalidInput:
    return InvalidInput(
        f"--against cannot trust this repository: {why}",
        where=top,
        remedy="run it in a clone of the project's own repository, or in a work tree of it",
    )


def _owner(path: Path) -> int:
    return path.stat().st_uid


def _environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment of Git, without any of the caller's variables that change where Git looks or what it
    runs."""
    kept = {name: value for name, value in inherited.items() if not name.startswith("GIT_")}
    return kept | _ENVIRONMENT | dict(_settings())


def _settings() -> Iterator[tuple[str, str]]:
    for number, (key, value) in enumerate(_CONFIG.items()):
        yield f"GIT_CONFIG_KEY_{number}", key
        yield f"GIT_CONFIG_VALUE_{number}", value


def _program(top: Path) -> str:
    """Returns the program `git` on PATH; relative folders and programs in the work tree are ignored."""
    for entry in os.environ.get("PATH", os.defpath).split(os.pathsep):
        found = Path(entry, "git")
        if Path(entry).is_absolute() and os.access(found, os.X_OK) and found.is_file():
            real = found.resolve()
            if not real.is_relative_to(top) and not Path(entry).resolve().is_relative_to(top):
                return str(found)
    raise InvalidInput("git is not installed", where="--against", remedy="install git")
