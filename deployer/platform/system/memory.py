"""Memory that a process has freed and its allocators still hold."""

from __future__ import annotations

import ctypes
import os
import sys

_ARENAS, _MAPPED = -8, -3  # M_ARENA_MAX and M_MMAP_THRESHOLD of glibc
MOST_ARENAS = 2  #: parts of the memory that threads share; by default each of the first threads gets its own
LEAST_MAPPED = 131_072  #: bytes of a block that is returned as soon as it is freed; by default this grows to 32 MiB
_OWN_SETTINGS = ("MALLOC_ARENA_MAX", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES", "LD_PRELOAD")


def keep_little_memory() -> None:
    """Has the C library (glibc) keep little of what is freed: what many threads leave free in parts of their own is
    never enough to be returned, and grows with the work.

    Call it before threads are started. It does nothing where the environment sets this, or has another allocator.
    """
    if sys.platform != "linux" or any(name in os.environ for name in _OWN_SETTINGS):
        return
    configure = getattr(ctypes.CDLL(None), "mallopt", None)
    if configure is not None:
        configure(_ARENAS, MOST_ARENAS)
        configure(_MAPPED, LEAST_MAPPED)


def release_memory() -> None:
    """Returns freed memory to the system, where the C library supports it (glibc). Otherwise a server would keep the
    memory."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
