"""Writes of DataFrames by both halves of the writer, without Spark: what is in the table, refused, and left behind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import WriterCommitMessage

from deployer.errors import Conflict, InvalidInput, NotFound, Refused
from deployer.specs.types.arrow import arrow_schema
from deployer.state.log.updates import SetSchema, SetTableProperties
from deployer.tables.maintenance.collect.garbage import collect_garbage
from tests.spark.writes import Write, as_spark, in_task, uncommitted
from tests.tables.lakes import FLIGHTS, Lake, flights, sorted_rows
from tests.tables.test_types import COLUMNS, rows_of


def rows_in(lake: Lake) -> list[dict[str, Any]]:
    return sorted_rows(lake.open().scan().to_table())


def keyed(*tables: pa.Table) -> list[dict[str, Any]]:
    """The rows of the tables, where of several rows with one key the last one counts."""
    found = {(row["carrier"], row["flight"]): row for table in tables for row in table.to_pylist()}
    return sorted_rows(pa.Table.from_pylist([*found.values()], FLIGHTS))


@pytest.mark.parametrize("row_keys", [("carrier", "flight"), ()], ids=["keys", "no keys"])
def test_tasks_write_sorted_rows_into_leaves_as_one_version(lake: Lake, row_keys: tuple[str, ...]) -> None:
    before = lake.table(row_keys=row_keys).opened.state.lance_version
    Write(lake, [flights(30), flights(30, 30)]).run()
    table = lake.open()
    assert rows_in(lake) == sorted_rows(flights(60)) and table.opened.state.lance_version == before + 1
    leaves = {leaf.partition_id for leaf in table.opened.state.leaves()}
    assert all(file.partition in leaves and file.sorted == bool(row_keys) for file in table.opened.state.files)
    assert [job.kind for job in table.opened.state.jobs.values()] == ["append"]
    assert not uncommitted(lake) and not table.opened.state.intents


def test_every_type_comes_back(lake: Lake) -> None:
    schema = arrow_schema(COLUMNS)
    lake.table(schema=schema, row_keys=())
    rows = rows_of(schema)
    Write(lake, [rows.slice(0, 77), rows.slice(77)]).run()
    found = lake.open().scan().to_table()
    assert found.schema.equals(rows.schema)
    for name in schema.names:
        assert found[name].to_pylist() == rows[name].to_pylist(), name


def test_attempts_that_do_not_count_leave_nothing(lake: Lake) -> None:
    lake.table()
    write = Write(lake, [flights(20), flights(20, 20)])
    write.attempt(0)  # of two that run at once, one counts
    messages = [write.attempt(0), write.attempt(1)]
    write.attempt(1)
    write.writer.commit([*messages])
    assert rows_in(lake) == sorted_rows(flights(40)) and not uncommitted(lake)


def test_a_task_that_fails_and_a_write_that_is_aborted_leave_nothing(lake: Lake) -> None:
    lake.table(row_keys=())
    write = Write(lake, [flights(20), flights(20, 20)])
    messages: list[WriterCommitMessage | None] = [write.attempt(0), None]
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), in_task(1):
            write.writer.write(failing(as_spark(flights(20, 20))[1]))
    write.attempt(1)  # its message is lost with its executor
    write.writer.abort(messages)
    assert not uncommitted(lake) and lake.open().count() == 0


def failing(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches
    raise ZeroDivisionError


def test_an_abort_after_the_commit_takes_nothing_back(lake: Lake) -> None:
    lake.table()
    write = Write(lake, [flights(20)])
    messages = [write.attempt(0)]
    write.writer.commit([*messages])
    write.writer.abort([*messages])
    assert rows_in(lake) == sorted_rows(flights(20))


@pytest.mark.parametrize("mode", ["append", "upsert", "overwrite"])
def test_a_job_is_done_once(lake: Lake, mode: str) -> None:
    lake.table()
    for start in (0, 100):  # the second one is of the same job, whatever its rows are
        Write(lake, [flights(9, start)], job_id="monday", overwrite=mode == "overwrite", upsert=mode == "upsert").run()
    late = Write(lake, [flights(9, 200)], job_id="tuesday", upsert=mode == "upsert")
    Write(lake, [flights(9, 300)], job_id="tuesday", upsert=mode == "upsert").run()
    late.run()  # both were planned before one was done
    assert rows_in(lake) == sorted_rows(pa.concat_tables([flights(9), flights(9, 300)])) and not uncommitted(lake)


def test_an_upsert_replaces_rows_by_their_keys(lake: Lake) -> None:
    lake.table()
    changed = flights(30, 20).set_column(2, FLIGHTS.field("delay"), pa.array([-1] * 30, pa.int16()))
    Write(lake, [flights(40)]).run()
    Write(lake, [changed.slice(0, 11), changed.slice(11)], upsert=True, job_id="u").run()
    assert rows_in(lake) == keyed(flights(40), changed)
    job = lake.open().opened.state.jobs["u"]
    assert job.counts is not None and (job.counts.updated, job.counts.inserted, job.counts.deleted) == (20, 10, 0)
    Write(lake, [flights(50)], upsert=True).run()
    assert rows_in(lake) == sorted_rows(flights(50)) and not uncommitted(lake)


def test_an_upsert_with_a_key_in_two_tasks_is_refused(lake: Lake) -> None:
    lake.table()
    Write(lake, [flights(10)]).run()
    with pytest.raises(Refused, match=r"2 keys are in more than one of the rows \(first: \(carrier=") as refused:
        Write(lake, [flights(12, 5), flights(12, 15)], upsert=True).run()
    assert refused.value.remedy == "leave one row for each key"
    assert rows_in(lake) == sorted_rows(flights(10)) and not uncommitted(lake)


def test_overwriting_replaces_all_rows(lake: Lake) -> None:
    lake.table()
    Write(lake, [flights(40)]).run()
    Write(lake, [flights(7, 100), flights(0)], overwrite=True).run()
    assert rows_in(lake) == sorted_rows(flights(7, 100))
    lake.store.commit(lake.open().opened.entry.table_id, [SetTableProperties({"deletion_protection": True})])
    with pytest.raises(Refused, match="would remove all 7 rows of the table, which is protected"):
        Write(lake, [flights(0)], overwrite=True).run()
    assert not uncommitted(lake)


def with_bad(rows: pa.Table, *places: int) -> pa.Table:
    """The rows with delays at these places that no int16 is."""
    delays = [10**6 if place in places else 1 for place in range(rows.num_rows)]
    return rows.set_column(2, "delay", pa.array(delays, pa.int64()))


def test_bad_rows_refuse_the_write_and_are_named(lake: Lake) -> None:
    lake.table()
    with pytest.raises(Refused) as refused:
        Write(lake, [with_bad(flights(10), 3), with_bad(flights(10, 10), 0, 9)]).run()
    assert str(refused.value) == (
        "table/air.flights: 3 rows cannot be loaded, so nothing was; fix them, or set bad rows aside by the option "
        "`bad_rows`:\n"
        "  partition 0 of the DataFrame: row 4: column 'delay' '1000000' does not fit int16\n"
        "  partition 1 of the DataFrame: row 1: column 'delay' '1000000' does not fit int16\n"
        "  partition 1 of the DataFrame: row 10: column 'delay' '1000000' does not fit int16"
    )
    assert not uncommitted(lake) and lake.open().count() == 0


def test_bad_rows_are_set_aside(lake: Lake, tmp_path: Path) -> None:
    lake.table()
    place = tmp_path / "bad.jsonl"
    Write(lake, [with_bad(flights(10), 3), with_bad(flights(10, 10), 0)], bad_rows=place, max_bad_rows="10%").run()
    assert lake.open().count() == 18
    [first, second] = [json.loads(line) for line in place.read_text().splitlines()]
    assert first["flight"] == (3 * 7919) % 1000 and first["_bad"][0]["row"] == 4 and second["_bad"][0]["row"] == 1
    with pytest.raises(InvalidInput, match="file of bad rows exists already") as exists:
        Write(lake, [with_bad(flights(10), 3)], bad_rows=place)
    assert exists.value.remedy == "give `bad_rows` another name, or move the file away"
    other = tmp_path / "other.jsonl"
    with pytest.raises(InvalidInput, match="2 of 10 rows are bad, which is more than `max_bad_rows` 1"):
        Write(lake, [with_bad(flights(10, 50), 3, 4)], bad_rows=other, max_bad_rows=1).run()
    assert lake.open().count() == 18 and len(other.read_text().splitlines()) == 2 and not uncommitted(lake)


@pytest.mark.parametrize("treatment", ["reject", "skip", "set aside"])
def test_unique_keys_that_are_there_or_in_two_tasks(lake: Lake, tmp_path: Path, treatment: str) -> None:
    lake.table(unique=True)
    Write(lake, [flights(10)]).run()
    options: dict[str, Any] = {"skip": {"on_duplicate": "skip"}, "set aside": {"bad_rows": tmp_path / "bad.jsonl"}}
    write = Write(lake, [flights(20, 5), flights(20, 20)], **options.get(treatment, {}))
    if treatment == "reject":
        with pytest.raises(Refused, match=r"5 of 40 rows have keys that the table or the load already has"):
            write.run()
        assert rows_in(lake) == sorted_rows(flights(10)) and not uncommitted(lake)
        return
    write.run()
    assert rows_in(lake) == sorted_rows(flights(40)) and not uncommitted(lake)
    if treatment == "set aside":
        assert len((tmp_path / "bad.jsonl").read_text().splitlines()) == 10


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        pytest.param(
            flights(1).rename_columns(["carrier", "flight", "dely", "at", "price"]),
            {},
            "the table has no column 'dely' (did you mean 'delay'?)",
            id="unknown column",
        ),
        pytest.param(flights(1).drop_columns(["at", "price"]), {}, "does not have columns 'at', 'price'", id="missing"),
        pytest.param(
            flights(1).set_column(1, "flight", pa.array([True])), {}, "'flight' is bool, which cannot", id="type"
        ),
        pytest.param(flights(1), {"jobid": "x", "upsrt": "true"}, "no option `upsrt` for writing", id="option"),
        pytest.param(flights(1), {"upsert": "maybe"}, "the option `upsert` is 'maybe'", id="flag"),
        pytest.param(flights(1), {"max_bad_rows": "5"}, "`max_bad_rows` is given without `bad_rows`", id="limit"),
        pytest.param(flights(1), {"on_duplicate": "skip"}, "row keys are not declared unique", id="not unique"),
        pytest.param(flights(1), {"path": "air.flight"}, "there is no table 'air.flight'", id="table"),
    ],
)
def test_what_does_not_fit_is_refused_before_a_task_starts(
    lake: Lake, rows: pa.Table, options: dict[str, Any], message: str
) -> None:
    lake.table()
    with pytest.raises((InvalidInput, NotFound)) as refused:
        Write(lake, [rows], **options)
    assert message in str(refused.value) and refused.value.remedy and "--" not in refused.value.remedy


def test_missing_columns_are_null_where_that_is_asked_for(lake: Lake) -> None:
    lake.table()
    Write(lake, [flights(5).drop_columns(["at", "price"])], missing_as_null=True).run()
    assert lake.open().scan(columns=["price"]).to_table()["price"].null_count == 5


def test_a_table_that_changes_meanwhile_refuses_the_write_and_names_the_columns(lake: Lake) -> None:
    lake.table()
    write = Write(lake, [flights(5)])
    messages = [write.attempt(0)]
    wider = FLIGHTS.append(pa.field("gate", pa.string(), nullable=False))
    lake.store.commit(lake.open().opened.entry.table_id, [SetSchema(wider.serialize().to_pybytes(), 1)])
    with pytest.raises((InvalidInput, Conflict), match="column 'gate' is missing, and the table needs it"):
        write.writer.commit([*messages])
    write.writer.abort([*messages])
    assert not uncommitted(lake)


def test_a_driver_that_is_killed_leaves_files_to_table_gc(lake: Lake) -> None:
    opened = lake.table().opened
    Write(lake, [flights(20)]).attempt(0)
    assert len(uncommitted(lake)) == 5  # a file for each leaf, and the task's note
    collect_garbage(lake.store, lake.root, opened.entry.table_id, now=4e9)
    assert not uncommitted(lake)
