"""Starting moto's server for a while."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from botocore import loaders

_REPOSITORY = Path(__file__).parents[2]


@cache
def read_models_once() -> None:
    """Has all sessions of boto share what they read of AWS's models, which takes most of the time of a new client."""
    kind: Any = loaders.Loader
    files: Any = loaders.JSONFileLoader
    read, list_services = cache(files()._load_file), kind.list_available_services
    listed: dict[tuple[str, ...], list[str]] = {}

    def services(self: Any, type_name: str) -> list[str]:
        place = (type_name, *self.search_paths)
        if place not in listed:
            listed[place] = list_services(self, type_name)
        return listed[place]

    files._load_file = lambda self, *arguments: read(*arguments)
    kind.list_available_services = services


@contextmanager
def moto_server(*arguments: str) -> Iterator[str]:
    """The URL of a server on a free port, in a process of its own that ends with this one."""
    read_models_once()
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
