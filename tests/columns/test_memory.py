"""The memory that the C library keeps of what threads of a run have freed."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from deployer.platform.system.memory import MOST_ARENAS

THREADS = 12
PROGRAM = f"""
import ctypes, tempfile, threading
from deployer.platform.system.memory import keep_little_memory

keep_little_memory()
library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p
together = threading.Barrier({THREADS})

def allocate():
    together.wait()
    assert library.malloc(ctypes.c_size_t(1000))
    together.wait()  # an arena of a thread that has ended is used again

threads = [threading.Thread(target=allocate) for _ in range({THREADS})]
for each in threads:
    each.start()
for each in threads:
    each.join()
with tempfile.NamedTemporaryFile() as file:
    library.fopen.restype = ctypes.c_void_p
    stream = ctypes.c_void_p(library.fopen(file.name.encode(), b"w"))
    library.malloc_info(0, stream)
    library.fclose(stream)
    print(file.read().count(b"<heap nr="))
"""


def arenas(**environment: str) -> int:
    """Returns the number of arenas of a process with threads that allocate at the same time."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("MALLOC_", "GLIBC_", "LD_PRELOAD"))}
    command = [sys.executable, "-c", PROGRAM]
    ran = subprocess.run(command, env=inherited | environment, capture_output=True, text=True, check=True)
    return int(ran.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="arenas are those of glibc")
def test_threads_share_few_arenas_unless_the_environment_says_how_many() -> None:
    assert arenas() == MOST_ARENAS
    assert arenas(MALLOC_ARENA_MAX="5") == 5
