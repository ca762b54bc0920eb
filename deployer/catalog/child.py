"""Runs a catalog server as a child process for the duration of a `with` block.

The server cannot run in the client's own process: the client of rerun-sdk holds the interpreter while it connects.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager

from deployer.errors import DeployerError
from deployer.state import open_reader

_LONGEST = 30.0  #: seconds that the server may take to end after its input is closed; then it is killed


@contextmanager
def local(root: str) -> Iterator[str]:
    """Serves the catalog of the instance at `root` on loopback; yields the URL for Rerun's `CatalogClient`.

    The server ends at the end of the block. It also ends when this process ends or is killed, because its standard
    input is closed then. Raises NotFound where there is no instance at `root`, and DeployerError where the server does
    not start; the server's own message is on standard error.
    """
    with closing(open_reader(root)):
        pass  # only checks that the instance exists
    command = [
        sys.executable,
        "-m",
        "deployer",
        "catalog",
        "serve",
        "--root",
        root,
        "--port",
        "0",
        "--until-input-ends",
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        try:
            url = server.stdout.readline().strip() if server.stdout is not None else ""
            if not url:
                raise DeployerError("the server of the catalog did not start", where=root, remedy="see its message")
            yield url
        finally:
            if server.stdin is not None:
                server.stdin.close()
            try:
                server.wait(_LONGEST)
            except subprocess.TimeoutExpired:
                server.kill()
