"""Backends and stores for the tests: whatever takes one runs on SQLite and on DynamoDB with S3 alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from deployer.platform.storage.objects import ObjectStore
from deployer.state.backends.protocol import Backend

from .samples import backend_of, objects_at, store_at

#: Opens the backend that the test has, again: another client of the same logs.
OpenBackend = Callable[[], Backend]


@pytest.fixture
def open_backend(root: str) -> Iterator[OpenBackend]:
    opened: list[Backend] = []

    def another() -> Backend:
        opened.append(backend_of(store_at(root)))
        return opened[-1]

    yield another
    for backend in opened:
        backend.close()


@pytest.fixture
def backend(open_backend: OpenBackend) -> Backend:
    return open_backend()


@pytest.fixture
def objects(root: str) -> ObjectStore:
    return objects_at(root)
