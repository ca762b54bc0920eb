"""What a backfill is refused for: a typed error with a remedy, and nothing is changed."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from deployer.columns.fill.checkpoints import JobFolder
from deployer.datasets.storage.options import objects_at
from deployer.errors import (
    Conflict,
    DeployerError,
    FunctionFailed,
    InvalidFunction,
    InvalidInput,
    NotFound,
    Refused,
    ResourcesUnavailable,
)
from deployer.functions import Columns, udf
from deployer.runs.records import runs_of
from deployer.state.log.updates import SetTableProperties
from deployer.table import ResourcesUnavailableError, Table, connect
from tests.columns.backfill.functions import scalar, strict, tenfold
from tests.columns.rows import SCHEMA
from tests.tables.lakes import Lake


class Both(NamedTuple):
    a: float
    b: float


@udf
def both(rating: float) -> Columns[Both]:
    return Both(rating, rating)


@udf(data_type=pa.string())
def text(rating: float) -> str:
    return str(rating)


@udf(data_type=pa.float64())
def of_unknown(nothing: float) -> float:
    return nothing


@udf(data_type=pa.float64())
def of_text(name: float) -> float:
    return name


CASES: list[tuple[str, Any, dict[str, Any], type[Exception], str]] = [
    ("unknown column", "scores", {}, InvalidInput, "there is no column 'scores'"),
    ("no column", [], {}, InvalidInput, "does not name a column"),
    ("several columns", ["score", "km"], {}, NotImplementedError, "several columns"),
    ("not computed", "rating", {}, InvalidInput, "column rating is not computed: it has neither SQL nor a function"),
    ("a row key", "id", {"udf": scalar}, InvalidInput, "column id is a row key or sort key"),
    ("another type", "score", {"udf": text}, InvalidInput, "makes string, and column score is float64"),
    ("unknown input", "score", {"udf": of_unknown}, ValueError, "the table has no column `nothing`"),
    ("an input of another type", "score", {"udf": of_text}, ValueError, "column `name` is string"),
    (
        "itself",
        "score",
        {"udf": udf(data_type=pa.float64(), input_columns=["score"])(lambda a: a)},
        InvalidInput,
        "itself",
    ),
    ("empty condition", "score", {"where": " "}, InvalidInput, "`where` is empty"),
    ("not SQL", "score", {"where": "id in (1"}, InvalidInput, "is not one SQL expression"),
    ("not boolean", "score", {"where": "rating + 1"}, InvalidInput, "does not return a boolean"),
    ("column of a condition", "score", {"where": "idd > 1"}, InvalidInput, "there is no column 'idd'"),
    ("two statements", "score", {"where": "1=1; drop table x"}, InvalidInput, "is not one SQL expression"),
    ("negative size", "score", {"num_frags": -1}, InvalidInput, "num_frags=-1 is not a positive whole number"),
    ("no fragments", "score", {"num_frags": 0}, InvalidInput, "num_frags=0"),
    ("negative skip", "score", {"skip_frags": -1}, InvalidInput, "skip_frags=-1"),
    ("all skipped", "score", {"skip_frags": 3}, InvalidInput, "skip_frags=3 skips all of the 3 fragments"),
    ("task size", "score", {"task_size": 0}, InvalidInput, "task_size=0"),
    ("granularity", "score", {"commit_granularity": 0}, InvalidInput, "commit_granularity=0"),
    ("concurrency", "score", {"concurrency": True}, InvalidInput, "concurrency=True"),
    (
        "minimum above maximum",
        "score",
        {"min_checkpoint_size": 9, "max_checkpoint_size": 8},
        InvalidInput,
        "min_checkpoint_size=9 is above max_checkpoint_size=8",
    ),
    ("checkpoint size", "score", {"checkpoint_size": 0}, InvalidInput, "checkpoint_size=0"),
    ("least checkpoint", "score", {"min_checkpoint_size": -1}, InvalidInput, "min_checkpoint_size=-1"),
    ("skipped past the end", "score", {"skip_frags": 99}, InvalidInput, "skip_frags=99 skips all"),
    ("flush", "score", {"batch_checkpoint_flush_interval_seconds": -1}, InvalidInput, "is negative"),
    ("blob strategy", "score", {"blob_read_strategy": "fast"}, InvalidInput, "blob_read_strategy='fast'"),
    ("blob buffer", "score", {"blob_read_buffer_size": 0}, InvalidInput, "blob_read_buffer_size=0"),
    ("version", "score", {"read_version": 99}, NotFound, "the table has no version 99"),
    ("job id", "score", {"job_id": "../x"}, InvalidInput, "is not a valid job id"),
    ("timeout", "score", {"timeout": 3}, InvalidInput, "timeout=3 is not a time"),
    ("columns of no kind", None, {}, InvalidInput, "None does not name a column"),
    ("a number as a condition", "score", {"where": 3}, InvalidInput, "where=3 is not a string"),
    ("of many rows", "score", {"where": "max(rating) > 1"}, InvalidInput, "max is a function of many rows"),
    ("a window", "score", {"where": "row_number() over () > 1"}, InvalidInput, "a window function reads many rows"),
    ("no concurrency", "score", {"concurrency": None}, InvalidInput, "concurrency=None"),
    ("a job id of no text", "score", {"job_id": 3}, InvalidInput, "3 is not a valid job id"),
    ("status time", "score", {"refresh_status_secs": -1}, InvalidInput, "refresh_status_secs=-1 is negative"),
    ("no status time", "score", {"refresh_status_secs": None}, InvalidInput, "refresh_status_secs=None"),
    ("admission", "score", {"_admission_check": "no"}, InvalidInput, "'no' does not say whether"),
    ("strictness", "score", {"_admission_strict": 1}, InvalidInput, "1 does not say whether"),
    ("a function without @udf", "score", {"udf": len}, ValueError, "is not a function that computes a column"),
    ("SQL for a function", "score", {"udf": "rating * 2"}, ValueError, "udf='rating [*] 2' is not a function"),
]


@pytest.mark.thinned(2, to="full")
@pytest.mark.parametrize(
    ("column", "given", "error", "message"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_bad_input(
    column: Any, given: dict[str, Any], error: type[Exception], message: str, table: Table, lake: Lake
) -> None:
    before = lake.open().opened.state
    with pytest.raises(error, match=message) as raised:
        table.backfill(column, **given)
    if error is not NotImplementedError:  # the contract has that one
        assert isinstance(raised.value, DeployerError) and raised.value.remedy
    after = lake.open().opened.state
    assert (after.lance_version, after.version, after.runs) == (before.lance_version, before.version, before.runs)


def returning(value: Any) -> Any:
    return udf(data_type=pa.float64())(lambda rating: value)


def of_arrays(make: Callable[[pa.Array], Any]) -> Any:
    def arrays(rating: pa.Array) -> pa.Array:
        return make(rating)

    return udf(data_type=pa.float64())(arrays)


RETURNED: dict[str, tuple[Any, str]] = {
    "a text for a number": (returning("fast"), "WrongValue"),
    "a struct for a number": (returning({"a": 1}), "WrongValue"),
    "null, which the function does not allow": (
        udf(data_type=pa.float64(), nullable=False)(lambda rating: None),
        "NullValue",
    ),
    "fewer values": (of_arrays(lambda rating: rating.slice(1)), "values for"),
    "an array of another type": (of_arrays(lambda rating: rating.cast(pa.string())), "string"),
    "no array": (of_arrays(lambda rating: 7), "int"),
}


@pytest.mark.parametrize("case", RETURNED)
def test_what_a_function_may_not_return(case: str, table: Table, lake: Lake) -> None:
    """The run has failed, and no value of it is in the table."""
    function, message = RETURNED[case]
    before = lake.open().opened.state.lance_version
    with pytest.raises((FunctionFailed, InvalidFunction), match=message) as raised:
        table.backfill("score", udf=function)
    assert isinstance(raised.value, DeployerError) and raised.value.remedy and raised.value.where
    state = lake.open().opened.state
    assert state.lance_version == before and {file.computed for file in state.files} == {""}
    [run] = runs_of(state, "BACKFILL")
    assert (run.status, run.claims) == ("FAILED", ())


def of_a_package() -> Any:
    @udf(data_type=pa.float64())
    def far(rating: float) -> float:
        import polars_of_no_one  # type: ignore[import-not-found]

        return float(polars_of_no_one.far(rating))

    return far


def of_an_open_file() -> Any:
    lock = threading.Lock()

    @udf(data_type=pa.float64())
    def locked(rating: float) -> float:
        with lock:
            return rating

    return locked


UNPACKABLE: dict[str, tuple[Callable[[], Any], str]] = {
    "a package that is not installed": (of_a_package, "polars_of_no_one"),
    "a closure that cannot be sent": (of_an_open_file, "lock"),
}


@pytest.mark.parametrize("case", UNPACKABLE)
def test_a_function_that_no_job_elsewhere_could_run_is_not_added(case: str, table: Table, lake: Lake) -> None:
    make, message = UNPACKABLE[case]
    before = lake.open().opened.state
    with pytest.raises(InvalidFunction, match=message) as raised:
        table.add_columns({"far": make()})
    assert raised.value.remedy
    assert lake.open().opened.state == before and not list(objects_at(lake.root).list("_udfs"))


UNRUNNABLE: dict[str, tuple[Callable[[], Any], dict[str, Any], str]] = {
    "a package that is not installed": (of_a_package, {}, "imports polars_of_no_one, which this Python does not find"),
    "a lock that tasks of Spark do not get": (of_an_open_file, {"engine": "spark"}, "`lock`, which `.*locked` keeps"),
}


@pytest.mark.parametrize("case", UNRUNNABLE)
def test_a_function_that_cannot_run_is_found_before_the_job_starts(case: str, table: Table, lake: Lake) -> None:
    make, given, message = UNRUNNABLE[case]
    before = lake.open().opened.state
    with pytest.raises(InvalidFunction, match=message) as raised:
        table.backfill("score", udf=make(), **given)
    assert raised.value.remedy and lake.open().opened.state == before


def test_plans_refuse_the_same(table: Table) -> None:
    for column, where, message in (("rating", None, "not computed"), ("score", "nope = 1", "no column 'nope'")):
        with pytest.raises(InvalidInput, match=message):
            table.plan_backfill(column, where=where)
    with pytest.raises(InvalidInput, match="skips all"):
        table.plan_backfill("score", skip_frags=9)


def test_a_function_that_is_not_trusted_is_not_imported(lake: Lake) -> None:
    with connect(lake.root) as connection, pytest.raises(Refused, match=r"functions:scalar` is named by the lake"):
        connection.open_table("flights").backfill("score")


def test_errors_of_what_is_no_job(table: Table) -> None:
    for ask in (lambda id: table.get_errors(id), lambda id: table.get_failed_row_addresses(id, "score")):
        for job_id in ("../../x", 3):
            with pytest.raises(InvalidInput, match="is not a valid job id"):
                ask(job_id)


def test_an_offline_table(table: Table, lake: Lake) -> None:
    lake.store.commit(lake.open().opened.entry.table_id, [SetTableProperties({"online": False})])
    with pytest.raises(Refused, match="the table is offline"):
        table.backfill("score")


def test_a_function_that_makes_several_columns(table: Table) -> None:
    with pytest.raises(InvalidInput, match="makes several columns, and score is one"):
        table.backfill("score", udf=both)


def test_ids_of_other_jobs(table: Table, lake: Lake) -> None:
    table.backfill("score", job_id="monday")
    assert table.backfill("score", job_id="monday").already_done
    with pytest.raises(InvalidInput, match="monday is the id of another job: a job of kind backfill score had it"):
        table.backfill("km", job_id="monday")
    lake.table(pa.schema([*SCHEMA]), row_keys=("id",), splits=(), name="others")
    other = lake.open("others").opened.entry
    JobFolder(lake.root, other.table_id, "tuesday").begin({}, "here")
    with pytest.raises(InvalidInput, match=r"tuesday is the id of another job: a job of table air\.others"):
        table.backfill("km", job_id="tuesday")


def test_an_id_of_another_function_or_condition(table: Table) -> None:
    with pytest.raises(DeployerError, match="thirteen"):
        table.backfill("score", udf=strict, job_id="monday", commit_granularity=1, concurrency=1)
    for given in ({"udf": tenfold}, {"udf": strict, "where": "id > 1"}):
        with pytest.raises(InvalidInput, match=r"job monday was started with another (function|condition)"):
            table.backfill("score", job_id="monday", **given)
    assert len(runs_of(table._newest().state, "BACKFILL")) == 1


def test_a_function_that_needs_more_than_there_is(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    @udf(data_type=pa.float64(), num_gpus=64)
    def on_gpus(rating: float) -> float:
        return rating

    assert ResourcesUnavailableError is ResourcesUnavailable
    with pytest.raises(ResourcesUnavailableError, match="needs more than a worker of this machine has: 64 GPUs"):
        table.backfill("score", udf=on_gpus)
    with pytest.warns(UserWarning, match="64 GPUs"):
        table.backfill("score", udf=on_gpus, _admission_strict=False, num_frags=1)
    table.backfill("score", udf=on_gpus, _admission_check=False, num_frags=2)
    monkeypatch.setenv("GENEVA_ADMISSION__CHECK", "false")
    table.backfill("score", udf=on_gpus)
    monkeypatch.setenv("GENEVA_ADMISSION__CHECK", "perhaps")
    with pytest.raises(InvalidInput, match="GENEVA_ADMISSION__CHECK='perhaps' is not valid"):
        table.backfill("score", udf=on_gpus)


def test_a_second_job_on_the_column(table: Table, lake: Lake) -> None:
    """Of any kind that writes it; another column is computed beside it."""
    begun, over = threading.Event(), threading.Event()

    @udf(data_type=pa.float64())
    def waiting(rating: float) -> float:
        begun.set()
        assert over.wait(300)
        return rating

    job = table.backfill_async("score", udf=waiting, job_id="monday")
    try:
        assert begun.wait(300)
        run = runs_of(lake.open().opened.state, "BACKFILL")[0]
        with pytest.raises(Conflict, match=f"run {run.run_id} of BACKFILL for score is RUNNING"):
            table.backfill("score", udf=scalar)
        source = lake.file(pa.table({"id": [1], "score": [2.0]}))
        with pytest.raises(
            (Conflict, InvalidInput), match=f"run {run.run_id} of BACKFILL for score is RUNNING|computed"
        ):
            table.load_columns(str(source), "id", ["score"])
        with pytest.raises(Conflict, match="job monday is in use by run"):
            table.backfill("score", udf=waiting, job_id="monday")
        with connect(lake.root) as connection:
            assert connection.open_table("flights").backfill("km").rows == 30
        with pytest.raises(TimeoutError, match="continues"):
            job.result(0.01)
    finally:
        over.set()
    assert job.result(60).rows == 30


def test_a_timeout_leaves_the_job_running(table: Table) -> None:
    over = threading.Event()

    @udf(data_type=pa.float64())
    def waiting(rating: float) -> float:
        assert over.wait(300)
        return rating

    try:
        with pytest.raises(TimeoutError, match=r"job monday is not done after 0\.05 s, and continues"):
            table.backfill("score", udf=waiting, job_id="monday", timeout=dt.timedelta(seconds=0.05))
    finally:
        over.set()
    for thread in threading.enumerate():
        if thread.name == "job-monday":
            thread.join(300)
    assert table.backfill("score", udf=waiting, job_id="monday").already_done
