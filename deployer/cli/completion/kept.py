"""The cache of completion between two key presses: small JSON files in the user's cache folder.

The cache only saves time: its contents are compared with the project and the state at each use. A file that is missing,
damaged or of another version of deployer is written again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path
from typing import Any

_FORMAT = 1


def _file(key: str) -> Path:
    """Returns the cache file of a key, which may be any text."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "deployer" / "completion" / hashlib.sha256(key.encode()).hexdigest()[:32]


def recall(key: str) -> Any:
    """Returns the value that was stored under the key; None without one."""
    try:
        document = json.loads(_file(key).read_bytes())
        return document["value"] if document["format"] == _FORMAT and document["key"] == key else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def keep(key: str, value: Any) -> None:
    """Stores a JSON value under the key, readable only by this user. Does nothing where the folder cannot be
    written."""
    file = _file(key)
    beside = file.with_name(f"{file.name}.{os.getpid()}")
    with contextlib.suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as made:
                json.dump({"format": _FORMAT, "key": key, "value": value}, made)
            beside.replace(file)
        finally:
            beside.unlink(missing_ok=True)
