"""Records of tables that several threads commit to at once, as an engine that creates tables does."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from deployer.state import create_store
from deployer.state.commits import Part


@pytest.fixture
def often_switched() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_threads_that_commit_to_different_tables_do_not_disturb_each_other(
    tmp_path: Path, often_switched: None
) -> None:
    with closing(create_store(str(tmp_path / "lake"))) as store, ThreadPoolExecutor(8) as pool:
        keeper = store._keeper
        assert keeper is not None

        def commit(thread: int) -> None:
            for number in range(200):
                keeper.after_commit([Part(f"{thread:x}{number:031x}", [])], store)

        list(pool.map(commit, range(8)))
