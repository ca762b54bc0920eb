"""Batches of streams by both halves of the writer, without Spark: each once, whoever dies where."""

from __future__ import annotations

import os
import random
import signal
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from deployer.errors import InvalidInput
from deployer.spark.writing.writers import RowStreamWriter
from deployer.specs.types.arrow import arrow_schema
from deployer.state.log.updates import SetSchema
from tests import forks
from tests.services.test_due import attach
from tests.spark.test_writes import keyed, rows_in, with_bad
from tests.spark.writes import Stream, Write, as_spark, batch_rows, in_task, python_rows, uncommitted
from tests.tables.lakes import FLIGHTS, Lake, flights, sorted_rows
from tests.tables.test_types import COLUMNS, rows_of

APPEND_POINTS = (
    "spark.task.written",
    "spark.commit.checked",
    "tables.commit.before-intent",
    "tables.commit.before-lance",
    "tables.commit.after-lance",
    "tables.commit.after-state",
    "spark.commit.committed",
)
UPSERT_POINTS = (
    "spark.task.written@2",
    "spark.commit.checked",
    "tables.rows.before-intent",
    "tables.rows.before-lance",
    "tables.rows.after-lance",
    "tables.rows.after-state",
    "spark.commit.committed",
)


def run_batch(lake: Lake, mode: str, batch: int, start: int, rows: int, failpoint: str = "") -> int:
    """Runs a batch in a process of its own, which is killed at the failpoint; its return code."""
    command = [sys.executable, "-m", "tests.spark.stream_worker", lake.root, mode, str(batch), str(start), str(rows)]
    environment = {**os.environ, "DEPLOYER_FAILPOINT": f"{failpoint}=kill"} if failpoint else dict(os.environ)
    return int(forks.run(command, env=environment).returncode)


@pytest.mark.thinned(2, to="full")
@pytest.mark.parametrize(
    ("mode", "failpoint"),
    [*(("append", each) for each in APPEND_POINTS), *(("upsert", each) for each in UPSERT_POINTS)],
)
def test_a_batch_whose_driver_is_killed_is_there_once(lake: Lake, mode: str, failpoint: str) -> None:
    lake.table()
    assert run_batch(lake, mode, 0, 0, 20) == 0
    assert run_batch(lake, mode, 1, 10 if mode == "upsert" else 20, 20, failpoint) == -signal.SIGKILL
    assert run_batch(lake, mode, 1, 10 if mode == "upsert" else 20, 20) == 0
    assert rows_in(lake) == keyed(flights(30 if mode == "upsert" else 40))
    assert not lake.open().opened.state.intents
    if failpoint not in ("tables.rows.before-intent", "tables.rows.before-lance"):  # files of deletions: `table gc`
        assert not {each for each in uncommitted(lake) if not each.startswith("_deletions")}


def test_batches_are_known_by_query_and_number(lake: Lake) -> None:
    lake.table()
    stream = Stream(lake)
    for _ in range(3):
        stream.run(0, *batch_rows(0, 10))
    stream.run(1, *batch_rows(10, 10))
    Stream(lake, query="another").run(0, *batch_rows(20, 10))
    assert rows_in(lake) == sorted_rows(flights(30)) and not uncommitted(lake)
    assert set(lake.open().opened.state.jobs) == {"stream-q-0", "stream-q-1", "stream-another-0"}


def test_streams_and_attempts_of_one_number_keep_apart(lake: Lake) -> None:
    lake.table()
    one, other = Stream(lake, query="one"), Stream(lake, query="other")
    first, second = one.tasks(0, batch_rows(0, 10)), other.tasks(0, batch_rows(10, 10))
    one.tasks(0, batch_rows(0, 10))  # of tasks that run twice
    one.writer().commit([*first], 0)
    other.writer().commit([*second], 0)
    assert rows_in(lake) == sorted_rows(flights(20)) and not uncommitted(lake)


def test_a_batch_without_rows_adds_nothing(lake: Lake) -> None:
    before = lake.table().opened.state.lance_version
    Stream(lake).run(0, flights(0), flights(0))
    Stream(lake).run(1)
    assert lake.open().opened.state.lance_version == before


def test_an_aborted_batch_leaves_nothing_and_comes_again(lake: Lake) -> None:
    lake.table()
    stream = Stream(lake)
    messages = stream.tasks(0, batch_rows(0, 10))
    stream.writer().abort([messages[0], None], 0)
    assert not uncommitted(lake)
    stream.run(0, *batch_rows(0, 10))
    assert rows_in(lake) == sorted_rows(flights(10))


def test_bad_rows_of_batches_are_set_aside_in_a_folder(lake: Lake, tmp_path: Path) -> None:
    lake.table()
    stream = Stream(lake, with_bad(flights(0)).schema, bad_rows=tmp_path / "bad")
    for _ in range(2):
        stream.run(0, with_bad(flights(10), 1), with_bad(flights(10, 10)))
    stream.run(1, with_bad(flights(1, 20), 0))  # no row of it is good
    assert lake.open().count() == 19
    found = {each.name: len(each.read_text().splitlines()) for each in (tmp_path / "bad").iterdir()}
    assert found == {"q-0.jsonl": 1, "q-1.jsonl": 1}


def test_a_schema_that_no_longer_fits_stops_the_stream_and_names_the_columns(lake: Lake) -> None:
    lake.table()
    stream = Stream(lake)
    stream.run(0, *batch_rows(0, 10))
    schema = FLIGHTS.remove(4).append(pa.field("gate", pa.string(), nullable=False))
    lake.store.commit(lake.open().opened.entry.table_id, [SetSchema(schema.serialize().to_pybytes(), 1)])
    with pytest.raises(InvalidInput, match="no column 'price'; column 'gate' is missing, and the table needs it"):
        stream.run(1, *batch_rows(10, 10))


def test_rows_of_release_4_0_are_written_as_batches_of_later_ones(lake: Lake) -> None:
    schema = arrow_schema(COLUMNS)
    lake.table(schema, ())
    stream, rows = Stream(lake, schema), rows_of(schema)
    columns, batches = as_spark(rows)
    plan = stream.writer()._plan
    with in_task(0, "q", 0):
        message = RowStreamWriter(plan, columns).write(python_rows(columns, batches))
    RowStreamWriter(plan, columns).commit([message], 0)
    table = lake.open().scan().to_table()
    for name in schema.names:
        assert table[name].to_pylist() == rows[name].to_pylist(), name


def test_options_that_are_not_for_streams_are_refused(lake: Lake) -> None:
    lake.table()
    with pytest.raises(InvalidInput, match="`job_id` is given for a stream"):
        Stream(lake, jobId="x").writer()
    Stream(lake, checkpointLocation="/c", queryName="q").writer()


def test_small_files_do_not_grow_with_a_trigger_for_compact(lake: Lake) -> None:
    lake.table(row_keys=())
    attach(lake, {"commits": 5})
    stream, most = Stream(lake), 0
    for batch in range(16):
        stream.run(batch, *batch_rows(batch * 10, 10))
        most = max(most, lake.open().opened.state.files.count)
    assert most < 12 and rows_in(lake) == sorted_rows(flights(160))


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.full), pytest.param(3, marks=pytest.mark.full)])
def test_the_table_equals_a_model_after_writes_and_kills(lake: Lake, seed: int) -> None:
    lake.table()
    attach(lake, {"commits": 4})
    dice, model, batch = random.Random(seed), flights(0), 0  # noqa: S311
    for step in range(12):
        start, rows = dice.randrange(300), dice.randrange(2, 40)
        match dice.choice(["upsert", "upsert", "stream", "stream", "overwrite", "aborted"]):
            case "upsert":
                write = Write(lake, batch_rows(start, rows), upsert=True, job_id=str(step))
                if dice.random() < 0.5:
                    write.attempt(dice.randrange(2))
                write.run()
                model = pa.Table.from_pylist(keyed(model, flights(rows, start)), FLIGHTS)
            case "stream":
                for _ in range(dice.randrange(3)):
                    run_batch(lake, "upsert", batch, start, rows, dice.choice(UPSERT_POINTS))
                assert run_batch(lake, "upsert", batch, start, rows) == 0
                model, batch = pa.Table.from_pylist(keyed(model, flights(rows, start)), FLIGHTS), batch + 1
            case "overwrite":
                Write(lake, batch_rows(start, rows), overwrite=True).run()
                model = flights(rows, start)
            case "aborted":
                write = Write(lake, batch_rows(start, rows))
                write.writer.abort([write.attempt(0), None])
        assert rows_in(lake) == sorted_rows(model), step
