"""Many tables of a lake on S3: read some at a time, and with one client."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from deployer.live.reader import active_tables, read_lake
from deployer.platform.storage.s3_client import bucket_of
from deployer.specs.model import TableSpec
from deployer.specs.types.types import Column, Scalar
from deployer.state import create_store, open_store
from deployer.state.store import StateStore
from deployer.tables.admin.tables import create_table
from tests.state.faults import Asked, Interpose

TABLES = 6
AT_ONCE = 4


@pytest.fixture
def store(on_s3: str) -> Iterator[StateStore]:
    made = create_store(on_s3, instance="tests")
    for number in range(TABLES):
        columns = (Column("id", Scalar("int64"), nullable=False), Column(f"c{number}", Scalar("string")))
        create_table(made, on_s3, TableSpec("air", f"t{number}", columns, row_keys=("id",)), "tests/dev")
    yield made
    made.close()


def test_tables_are_read_at_once_and_come_in_their_order(
    store: StateStore,
    on_s3: str,
    interpose: Interpose,
) -> None:
    """The first lists of manifests are answered only when several are asked for, and the first one asked for last."""
    met = threading.Barrier(AT_ONCE)
    waiting, last, lock = [0], threading.Event(), threading.Lock()
    together: list[bool] = []

    def answered(asked: Asked, answer: bytes) -> bytes:
        if "_versions" not in asked.path:
            return answer
        with lock:
            waiting[0] += 1
            number = waiting[0]
        if number <= AT_ONCE:
            try:
                met.wait(timeout=300)
                together.append(True)
            except threading.BrokenBarrierError:
                together.append(False)
        if number == 1:
            last.wait(timeout=300)
        elif number == TABLES:
            last.set()
        return answer

    _, s3 = interpose({})
    s3.answered = answered
    expected = [entry.name for entry, _ in active_tables(store).found.values()]
    again = open_store(on_s3)
    lake = read_lake(again, on_s3)
    again.close()
    assert together == [True] * AT_ONCE and waiting == [TABLES]
    assert [table.spec.name for table in lake.tables.values()] == expected
    assert {(table.spec.name, table.spec.columns[1].name) for table in lake.tables.values()} == {
        (f"t{number}", f"c{number}") for number in range(TABLES)
    }


def test_all_tables_share_one_client(store: StateStore, on_s3: str) -> None:
    name = on_s3.removeprefix("s3://").partition("/")[0]
    first = bucket_of(name).client()
    read_lake(store, on_s3)
    assert bucket_of(name).client() is first
