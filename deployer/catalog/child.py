"""A server of the catalog as a child process, for the time of a block.

It cannot be in the client's own process: the client of rerun-sdk holds the interpreter while it connects.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager

from deployer.errors import DeployerError
from deployer.state import open_reader

_LONGEST = 30.0  #: seconds that it may take to end when it is asked to


@contextmanager
def local(root: str) -> Iterator[str]:
    """Serves the catalog of the instance at `root` on loopback; yields the URL for Rerun's `CatalogClient`.

    The server ends with the block, and with this process, also when that is killed: its standard input ends then.
    Raises NotFound where there is no instance at `root`, DeployerError where the server does not start; its own message
    is on standard error.
    """
    with closing(open_reader(root)):
        pass  # there is an instance
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
