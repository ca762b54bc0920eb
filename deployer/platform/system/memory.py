"""Memory that a process has freed, and that its allocators keep."""

from __future__ import annotations

import ctypes
import sys


def release_memory() -> None:
    """Returns what was freed to the system, where the C library can (glibc): a server keeps it for its life else."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
