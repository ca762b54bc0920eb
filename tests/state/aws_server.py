"""Starting moto's server for a while."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_REPOSITORY = Path(__file__).parents[2]


@contextmanager
def moto_server(*arguments: str) -> Iterator[str]:
    """The URL of a server on a free port, in a process of its own that ends with this one."""
    command = [sys.executable, "-m", "tests.state.aws_server_process", *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=_REPOSITORY) as process:
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        assert port, "moto's server did not start"
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
