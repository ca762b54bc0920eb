"""Backfills beside other changes of the table: what is refused, and what is carried through."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import lance
import pyarrow as pa
import pytest

from deployer.datasets.recovery.rollforward import refresh
from deployer.errors import Conflict, Refused
from deployer.functions import udf
from deployer.runs.records import fail_dead_runs, runs_of
from deployer.services.kinds.clean import clean_table
from deployer.services.kinds.cluster import cluster_table
from deployer.services.kinds.compact import compact_table
from deployer.services.registry import run_service
from deployer.services.savepoints.savepoints import make_savepoint
from deployer.state.log.updates import RewriteStarted
from deployer.state.model.location import rewrite_location
from deployer.state.transactions.tables import to_begin_rewrite
from deployer.table import Table, connect
from deployer.tables.maintenance.verify.verify import verify
from tests.columns.backfill.conftest import TRUSTED, with_computed
from tests.columns.backfill.functions import scalar, tenfold
from tests.columns.others import others_changing
from tests.columns.rows import rows, values
from tests.tables.lakes import Lake


class Paused:
    """A backfill of `score` in a thread, which waits in the first call of its function."""

    def __init__(self, table: Table, **given: Any) -> None:
        self.begun, self.over = threading.Event(), threading.Event()

        @udf(data_type=pa.float64(), version="1")
        def waiting(rating: float) -> float:
            self.begun.set()
            assert self.over.wait(300)
            return rating * 2 + 1

        self.job = table.backfill_async("score", udf=waiting, job_id="monday", **given)
        assert self.begun.wait(300)

    def go(self) -> Any:
        self.over.set()
        return self.job.result(60)


@pytest.fixture
def paused(table: Table) -> Iterator[Paused]:
    found = Paused(table)
    yield found
    found.over.set()
    found.job.exception(60)


def of_all(table: Table) -> None:
    """Every row has its value."""
    found = values(table, "score")
    assert found == {i: i * 2 + 1.0 for i in found}


def run_id(lake: Lake) -> str:
    return runs_of(lake.open().opened.state, "BACKFILL")[0].run_id


def test_rewrites_leave_claimed_fragments(paused: Paused, table: Table, lake: Lake) -> None:
    table.add(with_computed(rows(30, 40)))
    table.add(with_computed(rows(40, 50)))
    compact_table(lake.root, "flights", {"min_files": 2})
    cluster_table(lake.root, "flights", {"columns": ["rating"]})
    clean_table(lake.root, "flights", {"older_than": "0d"})
    assert [file.fragment_id for file in lake.open().opened.state.files][:3] == [0, 1, 2]
    paused.go()
    of_all(table)
    assert len(values(table, "score")) == 50


def test_rows_that_are_deleted_and_changed_meanwhile(paused: Paused, table: Table) -> None:
    table.delete("id in (3, 17)")
    table.update(where="id = 5", values={"rating": 50.0})
    paused.go()
    assert values(table, "score") == {i: 101.0 if i == 5 else i * 2 + 1.0 for i in range(30) if i not in (3, 17)}


def test_inputs_that_are_loaded_meanwhile_are_computed_again(paused: Paused, table: Table, lake: Lake) -> None:
    path = lake.file(pa.table({"id": range(30), "rating": [float(i * 100) for i in range(30)]}))
    table.load_columns(str(path), "id", ["rating"])
    paused.go()
    assert values(table, "score") == {i: i * 200 + 1.0 for i in range(30)}


def test_fragments_that_others_rewrite_are_done_again(paused: Paused, table: Table, lake: Lake) -> None:
    lance.dataset(lake.open().opened.location).optimize.compact_files()
    paused.go()
    of_all(table)
    assert lake.open().opened.state.files.count == 1


SCHEMA_CHANGES: list[tuple[str, Callable[[Any], Any], str]] = [
    ("the column dropped", lambda dataset: dataset.drop_columns(["score"]), "column score was dropped or renamed"),
    (
        "the input dropped",
        lambda dataset: dataset.drop_columns(["rating"]),
        "column rating, which it reads, was dropped",
    ),
    (
        "the input renamed",
        lambda dataset: dataset.alter_columns({"path": "rating", "name": "stars"}),
        "column rating, which it reads, was dropped or renamed",
    ),
]


@pytest.mark.parametrize(
    ("change", "words"), [case[1:] for case in SCHEMA_CHANGES], ids=[case[0] for case in SCHEMA_CHANGES]
)
def test_columns_that_others_change_end_the_run(
    change: Callable[[Any], Any], words: str, paused: Paused, lake: Lake
) -> None:
    """By plain Lance, which knows nothing of runs."""
    change(lance.dataset(lake.open().opened.location))
    with pytest.raises(Conflict, match=words):
        paused.go()


def test_columns_of_a_run_are_not_renamed_nor_dropped(paused: Paused, table: Table, lake: Lake) -> None:
    changes: list[Callable[[], object]] = [
        lambda: table.drop_columns(["score"]),
        lambda: table.drop_columns(["rating"]),
        lambda: table.alter_columns({"path": "rating", "rename": "stars"}),
        lambda: table.alter_columns({"path": "score", "rename": "points"}),
        lambda: table.alter_columns({"path": "score", "udf": tenfold}),
    ]
    for change in changes:
        with pytest.raises((Conflict, Refused), match=f"run {run_id(lake)} of BACKFILL|is computed from|score"):
            change()
    paused.go()
    of_all(table)


def test_a_rewrite_of_the_table_waits(paused: Paused, table: Table, lake: Lake) -> None:
    opened = lake.open().opened
    begun = RewriteStarted(2, rewrite_location(opened.entry.location, opened.entry.table_id, 2), "x")
    required = to_begin_rewrite(1, opened.state.properties.generation)
    with pytest.raises(Conflict, match=f"run {run_id(lake)} of BACKFILL writes score of fragments 0, 1, 2"):
        lake.store.commit(opened.entry.table_id, [begun], required)
    paused.go()
    of_all(table)


def test_a_restore_is_refused(paused: Paused, table: Table, lake: Lake) -> None:
    make_savepoint(lake.store, lake.root, [lake.open().opened.entry], "before", author="me", note="", expires_at=None)
    with pytest.raises((Conflict, Refused), match="BACKFILL"):
        run_service(lake.root, "flights", "RESTORE")
    paused.go()
    of_all(table)
    run_service(lake.root, "flights", "RESTORE")
    assert set(values(table, "score").values()) == {None}
    assert {file.computed for file in lake.open().opened.state.files} == {""}
    table.backfill("score")
    of_all(table)


def test_a_run_whose_lease_is_over_holds_nothing(paused: Paused, table: Table, lake: Lake) -> None:
    """The process that lost its run commits nothing more; another run resumes the job."""
    run = runs_of(lake.open().opened.state, "BACKFILL")[0]
    fail_dead_runs(lake.store, lake.open().opened.entry.table_id, (run.lease_until or 0) + 1)
    assert compact_table(lake.root, "flights", {"min_files": 2}).work.portions == 1
    # Whichever looks first: its commit, or what renews its lease.
    with pytest.raises(Conflict, match=r"was ended or taken over|another process has it now|is FAILED, not RUNNING"):
        paused.go()
    assert set(values(table, "score").values()) == {None}
    table.backfill("score", udf=scalar)
    of_all(table)


@pytest.mark.thinned(2, to="full")
@pytest.mark.parametrize("granularity", [None, 2])
def test_beside_appends_deletions_and_rewrites(granularity: int | None, lake: Lake) -> None:
    def rewrite() -> None:
        compact_table(lake.root, "flights", {"min_files": 2})
        cluster_table(lake.root, "flights", {"columns": ["rating"]})
        clean_table(lake.root, "flights", {"older_than": "0d"})

    with (
        others_changing(lake, granularity, rewrite, with_computed) as changed,
        connect(lake.root, trusted_functions=TRUSTED) as connection,
    ):
        table = connection.open_table("flights")
        for _ in range(2):
            table.backfill("score", commit_granularity=granularity)
            table.backfill("score", udf=tenfold, commit_granularity=granularity)
    with connect(lake.root, trusted_functions=TRUSTED) as connection:
        table = connection.open_table("flights")
        refresh(lake.store, lake.root, lake.open().opened.entry.table_id)
        table.backfill("score", commit_granularity=granularity)
        of_all(table)
        assert {*values(table, "score")} == changed.ids
    assert [str(one) for each in verify(lake.store, lake.root, full=True) for one in each.differences] == []
