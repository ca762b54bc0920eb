"""Memory that a process has freed and its allocators still hold."""

from __future__ import annotations

import ctypes
import sys


def release_memory() -> None:
    """Returns freed memory to the system, where the C library supports it (glibc). Otherwise a server would keep the
    memory."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
