"""Reads untrusted files: only regular files of limited size, and JSON of limited depth.

A pipe would block until its writer writes, a device has no end, and Python's JSON parser fails on a thousand brackets.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any

from deployer.platform.files.private import kind_of

MAX_JSON_BYTES = 256 * 2**20  #: limit of a plan, a checkpoint, or another document in JSON
MAX_JSON_DEPTH = 250


class NotAFile(OSError):
    """The path is not a file. `strerror` has the kind, as for any OSError."""


class TooLarge(OSError):
    """The file is larger than the limit. `strerror` has the limit."""


def open_regular(path: Path | str) -> int:
    """Returns a descriptor for reading a file. Raises OSError, NotAFile among them; never waits for a pipe."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise NotAFile(errno.EINVAL, f"it is {kind_of(mode)} and not a file", str(path))
    return descriptor


def check_regular(path: Path) -> None:
    """Raises NotAFile for a path that is neither a file nor a link to one. Opening the file finds other faults."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return
    if not stat.S_ISREG(mode):
        raise NotAFile(errno.EINVAL, f"it is {kind_of(mode)} and not a file", str(path))


def read_limited(path: Path, limit: int) -> bytes:
    """Returns the content of a file of at most `limit` bytes. Raises OSError, NotAFile and TooLarge among them."""
    with os.fdopen(open_regular(path), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        # A buffer of the file's size: one of the limit's costs more to allocate than most files to read.
        data = file.read(min(size, limit) + 1)
        if size < len(data) <= limit:  # the file grew, or has no size, like those of /proc
            data += file.read(limit + 1 - len(data))
    if len(data) > limit:
        raise TooLarge(errno.EFBIG, f"it has more than {in_mib(limit)}", str(path))
    return data


def in_mib(size: int) -> str:
    """Returns a limit's size as text."""
    return f"{size / 2**20:,.0f} MiB" if size >= 2**20 else f"{size:,} bytes"


class TooDeep(ValueError):
    """The JSON's values are nested more than `MAX_JSON_DEPTH` deep."""


def parse_json(data: bytes | str) -> Any:
    """Returns the document. Raises ValueError for invalid JSON (TooDeep is one); never RecursionError."""
    try:
        document = json.loads(data)
    except RecursionError:
        raise TooDeep(f"its values are nested more than {MAX_JSON_DEPTH} deep") from None
    _check_depth(document)
    return document


def _check_depth(document: Any) -> None:
    level = [document]
    for _ in range(MAX_JSON_DEPTH + 1):
        level = [
            child
            for value in level
            if isinstance(value, dict | list)
            for child in (value.values() if isinstance(value, dict) else value)
            if isinstance(child, dict | list)
        ]
        if not level:
            return
    raise TooDeep(f"its values are nested more than {MAX_JSON_DEPTH} deep")
