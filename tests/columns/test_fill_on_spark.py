"""Runs that write columns as tasks of Spark: what they write, what a failed task ends, and what runs twice."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deployer.columns.fill.checkpoint_sizes import CheckpointSizes
from deployer.columns.fill.checkpoints import Checkpoint, JobFolder
from deployer.columns.fill.commit import Filling
from deployer.columns.fill.executor import Executor, InThreads
from deployer.columns.fill.fragment_file import FragmentWriter
from deployer.columns.fill.run import FillRun, FillSizes, FillStats
from deployer.columns.fill.spark_tasks import OnSpark
from deployer.columns.fill.work import FragmentWork, Target, works_of
from deployer.errors import InvalidInput
from deployer.platform.system.progress import OnProgress, Progress
from deployer.runs.runner import RunRequest, as_run
from deployer.specs.types.types import Column, Scalar
from deployer.state.model.services import Figures, FinalStatus
from deployer.table import Table
from deployer.tables.open_table import open_entry
from tests.columns.rows import values
from tests.tables.lakes import Lake

pytestmark = pytest.mark.spark

TARGET = Target((Column("score", Scalar("int64")),), (Column("score", Scalar("int64")),))


@dataclass(frozen=True)
class Squares:
    """The square of each row's id; it notes what it makes in files of `folder`, and fails at the id `bad`."""

    folder: str
    bad: int = -1
    inputs: Sequence[str] = ("id",)

    def prepare(self, dataset: Any, works: Sequence[FragmentWork]) -> None:
        """Does nothing."""

    def of_fragment(
        self, dataset: Any, work: FragmentWork, rows: range, size: Callable[[], int]
    ) -> Iterator[pa.RecordBatch]:
        ids = dataset.get_fragment(work.fragment_id).to_table(["id"])["id"].to_pylist()
        start = rows.start
        while start < rows.stop:
            stop = min(rows.stop, start + size())
            if self.bad in ids[start:stop]:
                raise InvalidInput(f"{self.bad} has no square", remedy="leave it out")
            with (Path(self.folder) / "made").open("a") as file:
                file.write("".join(f"{each}\n" for each in ids[start:stop]))
            yield pa.record_batch({"score": pa.array([each * each for each in ids[start:stop]], pa.int64())})
            start = stop

    def made(self) -> list[int]:
        """The ids that values were made for, in all processes, sorted."""
        return sorted(map(int, (Path(self.folder) / "made").read_text().split()))


@pytest.fixture(autouse=True)
def _sent_to_workers() -> Iterator[None]:
    """The classes of this module go to Spark's workers with the tasks, as the workers do not find the tests."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
    yield
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class Done:
    """What a run is recorded with."""

    stats: FillStats
    status: FinalStatus = "SUCCEEDED"
    why: str = ""

    @property
    def figures(self) -> Figures:
        return Figures(rows_out=self.stats.rows)


def filling_of(lake: Lake, run_id: str) -> Filling:
    opened = open_entry(lake.store, lake.root, lake.open().opened.entry)
    holder = opened.state.runs[run_id].holder or ""
    return Filling(lake.store, lake.root, opened.entry, "monday", run_id, holder, "load columns score", TARGET, ("id",))


def fill(
    lake: Lake, made: Squares, executor: Executor, on_progress: OnProgress | None = None, seconds: float = 60
) -> FillStats:
    def work(run_id: str, report_progress: OnProgress) -> Done:
        sizes = FillSizes(None, 8, CheckpointSizes(4, 4, seconds=seconds))
        return Done(FillRun(filling_of(lake, run_id), made, made, sizes, {}, report_progress, executor).fill())

    asked = RunRequest(cause="a test", target=("score",), job="monday")
    table_id = lake.open().opened.entry.table_id
    return as_run(lake.store, table_id, "LOAD_COLUMNS", asked, work, on_progress or (lambda _: None)).stats


def writer(lake: Lake, made: Squares) -> FragmentWriter:
    entry = lake.open().opened.entry
    folder = JobFolder(lake.root, entry.table_id, "monday")
    return FragmentWriter(folder, lake.open().opened.location, entry.dataset, TARGET, made, CheckpointSizes())


def test_tasks_write_what_threads_write(table: Table, lake: Lake, spark: Any) -> None:
    seen: list[Progress] = []
    stats = fill(lake, Squares(str(lake.folder)), OnSpark(lambda: spark), seen.append)
    assert (stats.rows, stats.fragments, stats.commits, stats.reused) == (30, 3, 1, 0)
    assert values(table, "score") == {i: i * i for i in range(30)}
    assert Squares(str(lake.folder)).made() == [*range(30)]
    assert seen[-1].done == 30
    assert not [each for each in (Path(lake.root) / "_work").rglob("*") if each.is_file()]


def test_an_error_of_a_task_is_that_of_the_run(table: Table, lake: Lake, spark: Any) -> None:
    """With its type and remedy, and the next run uses the fragments and parts of the other tasks."""
    with pytest.raises(InvalidInput, match=r"^17 has no square; leave it out$"):
        fill(lake, Squares(str(lake.folder), 17), OnSpark(lambda: spark), seconds=0)
    assert 4 <= len(Squares(str(lake.folder)).made()) < 30
    (lake.folder / "again").mkdir()
    again = Squares(str(lake.folder / "again"))
    fill(lake, again, OnSpark(lambda: spark))
    assert not {10, 11, 12, 13} & {*again.made()}
    assert values(table, "score") == {i: i * i for i in range(30)}


@pytest.mark.parametrize("executor", ["threads", "spark"])
def test_another_executor_resumes_a_job(executor: str, table: Table, lake: Lake, spark: Any) -> None:
    executors: dict[str, Executor] = {"threads": InThreads(1), "spark": OnSpark(lambda: spark)}
    with pytest.raises(InvalidInput):
        fill(lake, Squares(str(lake.folder), 29), executors.pop(executor), seconds=0)
    before = Squares(str(lake.folder)).made()
    assert {*range(20, 28)} <= {*before}  # a task of Spark may be ended before it has made a value
    whole = sum({*range(start, start + 10)} <= {*before} for start in (0, 10))
    [other] = executors.values()
    stats = fill(lake, Squares(str(lake.folder)), other)
    assert stats.reused <= whole and {*Squares(str(lake.folder)).made()} == {*range(30)}
    assert len(Squares(str(lake.folder)).made()) <= 30 + 2 * 4  # one checkpoint of each of the other tasks
    assert values(table, "score") == {i: i * i for i in range(30)}


def test_a_task_that_runs_twice_writes_once(table: Table, lake: Lake) -> None:
    fill_columns(table, lake)
    dataset = lake.open().opened.dataset()
    work = works_of(dataset, TARGET, ("id",))[0]
    before = lake.data_files()
    first = writer(lake, Squares(str(lake.folder))).write_once(dataset, work, lambda _: None)
    second = writer(lake, Squares(str(lake.folder))).write_once(dataset, work, lambda _: None)
    assert first == second and len(lake.data_files() - before) == 1
    assert Squares(str(lake.folder)).made() == [*range(10)]


def test_of_two_tasks_at_once_one_file_stays(table: Table, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    fill_columns(table, lake)
    dataset = lake.open().opened.dataset()
    work = works_of(dataset, TARGET, ("id",))[0]
    own, before = writer(lake, Squares(str(lake.folder))), lake.data_files()
    others: list[Checkpoint] = []
    save_first = JobFolder.save_first

    def later(folder: JobFolder, checkpoint: Checkpoint) -> bool:
        if not others:
            monkeypatch.setattr(JobFolder, "save_first", save_first)
            others.append(own.write_once(dataset, work, lambda _: None))
        return save_first(folder, checkpoint)

    monkeypatch.setattr(JobFolder, "save_first", later)
    assert own.write_once(dataset, work, lambda _: None) == others[0]
    assert lake.data_files() - before == set(others[0].paths)


def test_a_checkpoint_whose_file_is_gone_is_written_again(table: Table, lake: Lake) -> None:
    fill_columns(table, lake)
    dataset = lake.open().opened.dataset()
    work = works_of(dataset, TARGET, ("id",))[0]
    own = writer(lake, Squares(str(lake.folder)))
    first = own.write_once(dataset, work, lambda _: None)
    (Path(own.location) / "data" / first.files[0].path).unlink()
    second = own.write_once(dataset, work, lambda _: None)
    assert second != first and second.is_whole(own.location)
    assert own.folder.saved() == {0: second}


def fill_columns(table: Table, lake: Lake) -> None:
    """Adds the column, without values."""
    import lance

    lance.dataset(lake.open().opened.location).add_columns(pa.field("score", pa.int64()))
    assert "score" in table.schema.names
