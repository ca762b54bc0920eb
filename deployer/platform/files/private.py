"""Files and folders that only their owner may use, whatever the umask; files are written whole or not at all.

A new file is made beside its target with a random name (`O_EXCL`, mode 0600), flushed, and renamed. So a write never
follows a link.

A group may share a folder, as with git's `core.sharedRepository=group`. The opt-in is `chmod g+ws` on a folder: new
files in it then have mode 0660, new folders 02770. In a tree that deployer made (`_state`, `.pulumi`) g+w at its top
suffices.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from deployer.errors import InvalidInput, Refused

_SHARED_FILE = 0o660
_LONGEST = 100  #: characters of the target's name in a temporary name


def shares_by_hand(folder: Path) -> bool:
    """Returns whether the owner opted in: the folder has the setgid bit, and its group may write."""
    mode = folder.stat().st_mode
    return bool(mode & stat.S_ISGID and mode & stat.S_IWGRP)


def is_shared(top: Path) -> bool:
    """Returns whether the group may use the tree below `top`, a folder that deployer made."""
    return bool(top.stat().st_mode & stat.S_IWGRP)


def make_private_folder(folder: Path, top: Path) -> None:
    """Makes a folder durably.

    `top` and the folders below it are private, the folders above are not. Removes the permissions of other users from
    an existing `top` (see `tighten`). Raises Refused where `top` or a folder below it is a link.
    """
    refuse_link(folder)
    if folder == top:
        if folder.is_dir():
            tighten(folder)
            return
        make_folder(folder.parent)
        _make(folder, shared=shares_by_hand(folder.parent))
        return
    make_private_folder(folder.parent, top)
    if not folder.is_dir():
        _make(folder, shared=is_shared(top))


def refuse_link(path: Path) -> None:
    """Raises Refused for a link in one of deployer's own folders: deployer makes no links there, and a link may lead
    anywhere."""
    if path.is_symlink():
        raise Refused(
            "it is a link, so nothing is written there",
            where=path,
            remedy="check where it leads, and put a folder or file in its place",
        )


def _make(folder: Path, *, shared: bool) -> None:
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        return
    if shared:
        folder.chmod(0o2770)
    sync_folder(folder.parent)


def make_folder(folder: Path) -> None:
    """Makes a folder and its parents durably; the umask sets their permissions."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Makes the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def tighten(path: Path) -> None:
    """Removes the permissions of other users from a folder or file, and those of a group that may only read it.

    A group that may write keeps its permissions, because it shares the folder. Links, and files of another user, are
    not changed.
    """
    found = path.lstat()
    if stat.S_ISLNK(found.st_mode) or found.st_uid != os.geteuid():
        return
    mode = stat.S_IMODE(found.st_mode)
    wanted = mode & ~(0o007 if mode & stat.S_IWGRP else 0o077)
    if wanted != mode:
        path.chmod(wanted)


def new_file_beside(target: Path, *, shared: bool) -> tuple[int, Path]:
    """Returns a new private file in the folder of `target`, open for reading and writing, and its path."""
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name[:_LONGEST]}.", dir=target.parent)
    if shared:
        os.fchmod(descriptor, _SHARED_FILE)
    return descriptor, Path(name)


def create_file(path: Path, *, shared: bool, flags: int = os.O_RDWR) -> int:
    """Creates and opens a private file of that name. Raises FileExistsError if the name exists, also as a link."""
    descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    if shared:
        os.fchmod(descriptor, _SHARED_FILE)
    return descriptor


def open_lock(path: Path) -> int:
    """Returns the descriptor of a lock file in a folder that deployer made; the file is made when it does not exist.

    Raises OSError for a link or a file that is not regular. Raises OSError for a file of another user too, who could
    hold the lock forever, unless a group shares the folder.
    """
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            try:
                return create_file(path, shared=is_shared(path.parent))
            except FileExistsError:
                continue
        try:
            _check_lock(path, os.fstat(descriptor))
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor


def _check_lock(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise PermissionError(f"{path} is not a regular file")
    if found.st_uid not in (os.geteuid(), 0) and not is_shared(path.parent):
        raise PermissionError(f"{path} belongs to another user")


@contextmanager
def replacing(path: Path, *, keeps_mode: bool = False) -> Iterator[IO[bytes]]:
    """Yields a file to write to, which replaces `path` when the block succeeds; otherwise it is removed.

    `keeps_mode`: the new file gets the permissions of a replaced file of this user. Raises InvalidInput when `path` is
    not a file, such as a link or a pipe; OSError when it cannot be written.
    """
    mode = _mode_of(path) if keeps_mode else None
    _refuse_other_kinds(path)
    descriptor, beside = new_file_beside(path, shared=shares_by_hand(path.parent))
    try:
        with os.fdopen(descriptor, "w+b") as file:
            if mode is not None:
                os.fchmod(descriptor, mode)
            yield file
            file.flush()
            os.fsync(descriptor)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def write_private(path: Path, content: bytes | str, *, keeps_mode: bool = False) -> None:
    """Writes a whole file; text as UTF-8. Raises the errors of `replacing`."""
    with replacing(path, keeps_mode=keeps_mode) as file:
        file.write(content.encode("utf-8", "replace") if isinstance(content, str) else content)


def _mode_of(path: Path) -> int | None:
    """Returns the permissions of a file of this user; None where there is none."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    return stat.S_IMODE(found.st_mode) & 0o777 if found.st_uid == os.geteuid() else None


def _refuse_other_kinds(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        raise InvalidInput(f"{kind_of(mode)} is there instead of a file", where=path, remedy="give the path of a file")


def kind_of(mode: int) -> str:
    """Returns the kind of a file-system entry, from its `st_mode`."""
    for is_kind, description in (
        (stat.S_ISREG, "a file"),
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISLNK, "a link"),
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
    ):
        if is_kind(mode):
            return description
    return "a device"
