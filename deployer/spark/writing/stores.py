"""State stores that stay open from one batch of a stream to the next, because Spark keeps the driver's processes.

An open store reads only new entries of the logs; a newly opened one reads all entries since the last snapshot.
"""

from __future__ import annotations

import os
from pathlib import Path

from deployer.state import open_store
from deployer.state.store import StateStore

KEPT = 4  #: stores of the most recently written roots
_Key = tuple[int, str, tuple[int, int] | None]
_open: dict[_Key, StateStore] = {}


def store_at(root: str) -> StateStore:
    """Returns the state store of the instance at `root`, which this process keeps open. Raises NotFound.

    A process that was forked opens its own, and so does one that finds another file in the place of the state.
    """
    key = (os.getpid(), root, _file_at(root))
    if key not in _open:
        for other in [each for each in _open if each[0] == os.getpid() and each[1] == root] + [*_open][: -KEPT + 1]:
            if (former := _open.pop(other, None)) is not None and other[0] == os.getpid():
                former.close()
        _open[key] = open_store(root)
    else:
        _open[key] = _open.pop(key)  # the last one is the most recently used
    return _open[key]


def _file_at(root: str) -> tuple[int, int] | None:
    """Returns the identity of the file with an instance's state on a disk."""
    if "://" in root:
        return None
    try:
        found = Path(root, "_state", "state.db").stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
