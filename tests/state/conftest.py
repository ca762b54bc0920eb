"""Backends and stores for the tests; every backend joins the list of `backend` and runs the same tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from deployer.state.backend import Backend
from deployer.state.sqlite import SqliteBackend
from deployer.state.store import StateStore

from .samples import NEVER, store_at

settings.register_profile("state", deadline=None)  # files are fsynced, and machines are busy
settings.load_profile("state")

#: Opens the backend that the test has, again: another client of the same logs.
OpenBackend = Callable[[], Backend]


@pytest.fixture(params=["sqlite"])
def open_backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenBackend]:
    opened: list[Backend] = []

    def sqlite() -> Backend:
        opened.append(SqliteBackend(tmp_path / "_state" / "state.db", create=True))
        return opened[-1]

    yield {"sqlite": sqlite}[request.param]
    for backend in opened:
        backend.close()


@pytest.fixture
def backend(open_backend: OpenBackend) -> Backend:
    return open_backend()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StateStore]:
    """A store that takes snapshots only when asked."""
    store = store_at(tmp_path, policy=NEVER)
    yield store
    store.close()
