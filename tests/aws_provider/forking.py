"""Providers that start at once: a process that has imported everything forks one for each plugin that is started.

A provider takes a second of processor time to import the SDK and boto3 and to read AWS's models, and each command
starts one or two. Each is still a process of its own, with the arguments, folder, environment and output of the
executable that started it, and ends with that (`forked.py`).
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.projects import REPOSITORY

SOCKET = "TESTS_AWS_PROVIDERS"  #: the variable that names where to ask for one


@contextmanager
def forked_providers() -> Iterator[str]:
    """Where to ask, for as long as the process runs."""
    with tempfile.TemporaryDirectory(prefix="aws-") as folder:
        path = str(Path(folder) / "providers")
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(path)
            listening.listen(16)  # who asks before the imports are done waits
            command = [sys.executable, "-m", "tests.aws_provider.forking", str(listening.fileno())]
            fd = listening.fileno()
            process = subprocess.Popen(command, stdin=subprocess.PIPE, cwd=REPOSITORY, pass_fds=[fd])
        with process:
            yield path
            process.terminate()


def serve(listening: socket.socket) -> None:
    """Until the input ends, as it does with whoever started this."""
    from tests.aws_provider import kinds, provider

    kinds.read_models({kind.service for kind in provider.KINDS.values()})
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while sys.stdin not in select.select([listening, sys.stdin], [], [])[0]:
        asked, _ = listening.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listening.close()
            provide(asked)
        asked.close()


def provide(asked: socket.socket) -> None:
    """The provider, as the one who asked would have been it. Never returns."""
    from tests.aws_provider import provider

    message, outputs, _, _ = socket.recv_fds(asked, 1 << 20, 2)
    wanted = json.loads(message)
    for number, output in enumerate([os.open(os.devnull, os.O_RDONLY), *outputs]):
        os.dup2(output, number)
        os.close(output)
    os.chdir(wanted["folder"])
    os.environ.clear()
    os.environ.update(wanted["environment"])
    sys.argv[1:] = wanted["arguments"]

    def end_with_it() -> None:
        asked.recv(1)
        os._exit(0)

    threading.Thread(target=end_with_it, daemon=True).start()
    try:
        provider.run()
    finally:
        sys.stderr.flush()
        os._exit(1)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
