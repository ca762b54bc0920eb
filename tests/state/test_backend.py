"""What every backend owes the state store (deployer.state.backends.protocol)."""

from __future__ import annotations

import threading

import pytest

from deployer.state.backends.protocol import REMOVED, Backend, Record, SnapshotRecord

from .conftest import OpenBackend

pytestmark = pytest.mark.gate


def _record(version: int, log: str = "t1", txn_id: str = "", body: bytes = b"body") -> Record:
    return Record(log, version, txn_id or f"txn-{log}-{version}", body)


def _fill(backend: Backend, count: int, log: str = "t1") -> None:
    assert all(backend.put([_record(version, log)]) for version in range(1, count + 1))


def _pointer(version: int, log: str = "t1") -> SnapshotRecord:
    return SnapshotRecord(log, version, version * 1000, b"pointer")


def test_a_version_is_won_once(backend: Backend) -> None:
    assert backend.put([_record(1, txn_id="first")])
    assert not backend.put([_record(1, txn_id="second")])
    assert [record.txn_id for record in backend.records("t1", 0)] == ["first"]


def test_records_come_back_as_they_were_put(open_backend: OpenBackend) -> None:
    record = _record(1, body=bytes(range(256)) * 1000)
    open_backend().put([record])
    assert list(open_backend().records("t1", 0)) == [record]


def test_several_logs_are_written_all_or_none(backend: Backend) -> None:
    _fill(backend, 1, "t2")
    assert not backend.put([_record(1, "t1"), _record(1, "t2"), _record(1, "t3")])
    assert not backend.records("t1", 0)
    assert not backend.records("t3", 0)
    assert backend.put([_record(1, "t1"), _record(2, "t2"), _record(1, "t3")])
    assert [len(backend.records(log, 0)) for log in ("t1", "t2", "t3")] == [1, 2, 1]


def test_a_removed_version_cannot_be_won_again(backend: Backend) -> None:
    _fill(backend, 5)
    backend.add_snapshot(_pointer(4))
    backend.truncate("t1", 4)
    assert [backend.put([_record(version, txn_id="stalled")]) for version in (3, 4, 5, 6)] == [
        False,
        False,
        False,
        True,
    ]


@pytest.mark.parametrize("others", [[], ["t2"]], ids=["alone", "with another log"])
def test_nothing_is_put_into_a_removed_log(backend: Backend, others: list[str]) -> None:
    _fill(backend, 2)
    backend.truncate("t1", REMOVED)
    assert not backend.put([_record(3), *(_record(1, log) for log in others)])
    assert backend.tails({"t1": 2})["t1"].removed
    assert not backend.records("t1", 0)
    assert list(backend.logs()) == []


def test_one_of_many_racing_threads_wins(open_backend: OpenBackend) -> None:
    backend = open_backend()
    start = threading.Barrier(8)
    won: list[tuple[int, int]] = []

    def race(writer: int) -> None:
        start.wait()
        won.extend((v, writer) for v in range(1, 21) if backend.put([_record(v, txn_id=f"{writer}-{v}")]))

    threads = [threading.Thread(target=race, args=(writer,)) for writer in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(version for version, _ in won) == list(range(1, 21))
    assert [record.txn_id for record in backend.records("t1", 0)] == [f"{w}-{v}" for v, w in sorted(won)]


# What a reader at a version gets of a log with records 1..10, by its snapshots and floor.
TAILS = [
    ("nothing known, no snapshot", 0, [], 0, None, range(1, 11)),
    ("some known, no snapshot", 7, [], 0, None, range(8, 11)),
    ("all known", 10, [], 0, None, range(0)),
    ("nothing known, snapshot", 0, [3, 6], 0, 6, range(7, 11)),
    ("known below the snapshot", 4, [6], 0, None, range(5, 11)),
    ("nothing known, floor", 0, [6, 8], 6, 8, range(9, 11)),
    ("known below the floor", 4, [6, 8], 6, 8, range(9, 11)),
    ("known at the floor", 6, [6, 8], 6, None, range(7, 11)),
]


@pytest.mark.parametrize(
    ("after", "snapshots", "floor", "start", "versions"), [row[1:] for row in TAILS], ids=[row[0] for row in TAILS]
)
def test_a_reader_gets_what_it_misses(
    backend: Backend, after: int, snapshots: list[int], floor: int, start: int | None, versions: range
) -> None:
    _fill(backend, 10)
    for version in snapshots:
        assert backend.add_snapshot(_pointer(version))
    backend.truncate("t1", floor)
    tail = backend.tails({"t1": after})["t1"]
    assert [record.version for record in tail.records] == list(versions)
    assert tail.from_snapshot == (start is not None)
    assert tail.snapshot_version == max(snapshots, default=0)
    assert not tail.from_snapshot or (tail.snapshot and tail.snapshot.version) == start
    assert tail.floor == floor


def test_tails_of_many_logs_come_together(backend: Backend) -> None:
    for version in (1, 2, 3):
        records = [_record(version, f"t{number}") for number in range(300) if number % 3 + 1 >= version]
        assert all(backend.put(records[at : at + 40]) for at in range(0, len(records), 40))
    tails = backend.tails({f"t{number}": number % 2 for number in range(301)})
    assert [len(tails[f"t{number}"].records) for number in range(301)] == [
        *(1 + number % 3 - number % 2 for number in range(300)),
        0,
    ]


def test_records_are_read_in_pages(backend: Backend) -> None:
    _fill(backend, 10)
    assert [record.version for record in backend.records("t1", 3, 4)] == [4, 5, 6, 7]


def test_a_transaction_is_found_in_its_log_only(backend: Backend) -> None:
    backend.put([_record(1, "t1", "both"), _record(1, "t2", "both")])
    backend.put([_record(2, "t1", "one")])
    assert [backend.find(log, txn) for log in ("t1", "t2") for txn in ("both", "one", "none")] == [
        1,
        2,
        None,
        1,
        None,
        None,
    ]


def test_a_snapshot_pointer_is_added_once_and_not_below_the_floor(backend: Backend) -> None:
    _fill(backend, 10)
    assert backend.add_snapshot(_pointer(5))
    assert not backend.add_snapshot(SnapshotRecord("t1", 5, 1, b"other"))
    assert backend.add_snapshot(_pointer(8))
    assert list(backend.snapshots("t1")) == [_pointer(5), _pointer(8)]
    assert list(backend.truncate("t1", 8)) == [_pointer(5)]
    assert not backend.add_snapshot(_pointer(6))
    assert list(backend.snapshots("t1")) == [_pointer(8)]


def test_a_floor_only_rises(backend: Backend) -> None:
    _fill(backend, 10)
    backend.truncate("t1", 5)
    assert list(backend.truncate("t1", 3)) == []
    assert backend.tails({"t1": 0})["t1"].floor == 5


def test_logs_are_listed(backend: Backend) -> None:
    _fill(backend, 1, "t2")
    _fill(backend, 2, "t1")
    assert list(backend.logs()) == ["t1", "t2"]
