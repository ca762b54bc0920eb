"""Rows for which a function fails: the run ends with the row's key, or skips and records them."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deployer.columns.backfill import failed_rows
from deployer.datasets.storage.job_folders import ERRORS, job_files
from deployer.errors import FunctionFailed
from deployer.functions import skip, stop_above, udf
from deployer.functions.model import UDF
from deployer.platform.storage.envelope import seal, unseal
from deployer.services.kinds.clean import clean_table
from deployer.services.kinds.cluster import cluster_table
from deployer.services.kinds.compact import compact_table
from deployer.table import Table, connect
from deployer.tables.maintenance.collect.garbage import collect_garbage
from tests.columns.backfill.functions import of_sevens, on_id, picky, scalar, strict
from tests.columns.rows import values
from tests.tables.lakes import Lake

FAILED = [3, 10, 17, 24]
EXPECTED = {i: None if i in FAILED else i * 2 + 1.0 for i in range(30)}


def test_a_failure_ends_the_run_with_the_key_of_the_row(table: Table) -> None:
    with pytest.raises(
        FunctionFailed, match=r"column score, the row id 13 \(address 4294967299\): ValueError: thirteen"
    ):
        table.backfill("score", udf=strict, job_id="monday")
    assert values(table, "score") == dict.fromkeys(range(30))
    table.delete("id = 13")
    assert table.backfill("score", udf=strict, job_id="monday").rows == 29  # without the one that was deleted
    assert table.get_errors() == []


def test_skipped_rows_are_null_and_recorded(table: Table) -> None:
    done = table.backfill("score", udf=picky, job_id="monday")
    assert (done.errors, done.rows) == (4, 30) and values(table, "score") == EXPECTED
    found = table.get_errors(job_id="monday", column_name="score", error_type="ValueError")
    assert [each.row_key for each in found] == [{"id": i} for i in FAILED]
    first = found[0]
    assert (first.message, first.attempts, first.column_name, first.job_id) == ("3 is not liked", 1, "score", "monday")
    assert (
        first.row_address == 3 and first.dataset == 1 and first.at > 0 and 'raise ValueError(f"{id}' in first.traceback
    )
    assert table.get_errors(error_type="KeyError") == table.get_errors(column_name="km") == []
    assert table.get_errors("tuesday") == []
    assert table.backfill("score", udf=picky).rows == 0  # they are not computed again by default


def test_the_example_of_the_contract_computes_failed_rows_again(table: Table) -> None:
    table.backfill("score", udf=picky, job_id="monday")
    failed = table.get_failed_row_addresses(job_id="monday", column_name="score")
    addresses = ",".join(map(str, failed))
    done = table.backfill("score", udf=scalar, where=f"_rowaddr IN ({addresses})")
    assert (done.rows, done.stats.fragments) == (4, 3)
    assert values(table, "score") == {i: i * 2 + 1.0 for i in range(30)}


CHANGES: list[tuple[str, Any]] = [
    ("nothing", lambda lake, table: None),
    ("compact", lambda lake, table: compact_table(lake.root, "flights", {"min_files": 2})),
    ("cluster", lambda lake, table: cluster_table(lake.root, "flights", {"columns": ["rating"]})),
    ("update", lambda lake, table: table.update(where="id < 15", values={"name": "x"})),
    ("rows before them deleted", lambda lake, table: table.delete("id in (0, 1, 2, 11)")),
]


@pytest.mark.parametrize("change", [case[1] for case in CHANGES], ids=[case[0] for case in CHANGES])
def test_failed_rows_are_found_after_changes(change: Any, lake: Lake, table: Table) -> None:
    table.backfill("score", udf=picky, job_id="monday")
    change(lake, table)
    failed = table.get_failed_row_addresses("monday", "score")
    assert sorted(table.to_arrow(["id"], f"_rowaddr IN ({', '.join(map(str, failed))})")["id"].to_pylist()) == FAILED
    assert table.get_failed_row_addresses("monday", "km") == []


def test_rows_that_are_gone_are_named(lake: Lake, table: Table) -> None:
    table.backfill("score", udf=picky, job_id="monday")
    table.delete("id in (10, 24)")
    compact_table(lake.root, "flights", {"min_files": 2, "max_deleted_share": 0.01})
    with pytest.warns(UserWarning, match="rows of job monday do not exist any more: id 10, id 24"):
        failed = table.get_failed_row_addresses("monday", "score")
    assert sorted(table.to_arrow(["id"], f"_rowaddr IN ({', '.join(map(str, failed))})")["id"].to_pylist()) == [3, 17]


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.date32(), pa.timestamp("us", "UTC"), pa.decimal128(9, 2), pa.binary()]
)
def test_rows_are_found_by_keys_of_each_type(kind: pa.DataType, tmp_path: Any) -> None:
    lake = Lake(tmp_path)
    keys = _keys(kind)
    schema = pa.schema(
        [pa.field("key", kind, nullable=False), pa.field("id", pa.int64()), pa.field("score", pa.float64())]
    )
    lake.table(schema, row_keys=("key",), splits=())
    with connect(lake.root) as connection:
        table = connection.open_table("flights")
        for start in (0, 6):
            ids = pa.array(range(start, start + 6), pa.int64())
            table.add(pa.table([keys.slice(start, 6), ids, pa.nulls(6, pa.float64())], schema=schema))
        table.backfill("score", udf=on_id, job_id="monday")
        compact_table(lake.root, "flights", {"min_files": 2})
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            failed = table.get_failed_row_addresses("monday", "score")
        found = table.to_arrow(["id"], f"_rowaddr IN ({', '.join(map(str, failed))})")["id"].to_pylist()
    assert sorted(found) == [3, 10]


def _keys(kind: pa.DataType) -> pa.Array:
    if pa.types.is_binary(kind):
        return pa.array([bytes([200 + i, 0, i]) for i in range(12)], kind)
    if pa.types.is_string(kind):
        return pa.array([f"ke'y {i}" for i in range(12)])
    if pa.types.is_decimal(kind):
        return pa.array([f"{i}.25" for i in range(12)]).cast(kind)
    days = pa.array([f"2020-01-{i + 1:02}" for i in range(12)])
    return days.cast(pa.date32()) if pa.types.is_date(kind) else days.cast(pa.timestamp("us")).cast(kind)


def test_errors_are_kept_up_to_a_number_and_the_rest_counted(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failed_rows, "MOST_ERRORS", 3)
    assert table.backfill("score", udf=picky, job_id="monday").errors == 4
    assert len(table.get_errors("monday")) == 3


def test_all_errors_of_a_large_batch_are_kept_and_no_more_than_a_job_keeps(tmp_path: Path) -> None:
    """Not only as many as are looked up at a time, and none that is never shown is stored."""
    lake = Lake(tmp_path)
    fields = [pa.field("id", pa.int64(), nullable=False), pa.field("score", pa.float64())]
    lake.table(pa.schema(fields), row_keys=("id",), splits=())

    @udf(on_error=skip())
    def failing(id: int) -> float:
        raise ValueError(f"{id} is not liked")

    with connect(lake.root) as connection:
        table = connection.open_table("flights")
        for start, stop in ((0, 2_500), (2_500, 12_000)):
            ids = pa.array(range(start, stop), pa.int64())
            table.add(pa.table([ids, pa.nulls(len(ids), pa.float64())], schema=pa.schema(fields)))
        assert table.backfill("score", udf=failing, job_id="monday", num_frags=1).errors == 2_500
        kept = table.get_errors("monday")
        assert [each.row_key for each in kept] == [{"id": i} for i in range(2_500)]
        assert table.backfill("score", udf=failing, job_id="tuesday", where="1=1").errors == 12_000
        assert len(table.get_errors("tuesday")) == failed_rows.MOST_ERRORS
    folder = Path(lake.root) / ERRORS
    stored = [json.loads(unseal(path.read_bytes(), str(path))) for path in folder.rglob("tuesday/*")]
    assert sum(len(each["records"]) for each in stored) == failed_rows.MOST_ERRORS


def test_errors_survive_the_job_and_go_when_they_are_old(table: Table, lake: Lake) -> None:
    table.backfill("score", udf=picky, job_id="monday")
    table_id = lake.open().opened.entry.table_id
    clean_table(lake.root, "flights", {"older_than": "0d"})
    collect_garbage(lake.store, lake.root, table_id)
    assert len(table.get_errors("monday")) == 4
    newest = max(each.changed for files in job_files(lake.root, table_id, ERRORS).values() for each in files)
    collect_garbage(lake.store, lake.root, table_id, now=newest + 89 * 86_400)
    assert len(table.get_errors("monday")) == 4
    collect_garbage(lake.store, lake.root, table_id, now=newest + 91 * 86_400)
    assert table.get_errors("monday") == []


def test_a_damaged_record_counts_as_missing(table: Table, lake: Lake) -> None:
    table.backfill("score", udf=picky, job_id="monday")
    damaged = sorted((Path(lake.root) / ERRORS).rglob("*-*"))[0]
    damaged.write_bytes(damaged.read_bytes()[:-3] + b"xyz")
    assert len(table.get_errors("monday")) == 3


FORGED: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a text for a record": lambda document: {**document, "records": ["x"]},
    "a text for the number of rows": lambda document: {**document, "rows": "many"},
    "no number of rows": lambda document: {"records": document["records"]},
    "a text for an address": lambda document: {**document, "records": [{**document["records"][0], "row_address": "1"}]},
    "a text for a key": lambda document: {**document, "records": [{**document["records"][0], "row_key": "id"}]},
    "a number for a message": lambda document: {**document, "records": [{**document["records"][0], "message": 1}]},
}


@pytest.mark.parametrize("case", FORGED)
def test_a_record_that_no_job_stored_counts_as_missing(case: str, table: Table, lake: Lake) -> None:
    """Anyone who can write below the root can store one with a checksum that fits."""
    table.backfill("score", udf=picky, job_id="monday")
    path = sorted((Path(lake.root) / ERRORS).rglob("*-*"))[0]
    path.write_bytes(seal(json.dumps(FORGED[case](json.loads(unseal(path.read_bytes(), "")))).encode()))
    assert len(table.get_errors("monday")) == 3


def test_erased_rows_leave_no_record(table: Table, lake: Lake) -> None:
    table.backfill("score", udf=picky, job_id="monday")
    assert len(table.get_errors("monday")) == 4
    table.erase("id = 3")
    assert table.get_errors("monday") == [] and 3 not in values(table, "score")


def limited(share: float, after_rows: int = 30) -> UDF:
    return udf(data_type=pa.float64(), on_error=stop_above(share, after_rows=after_rows), version="1")(of_sevens)


@pytest.mark.parametrize("task_size", [None, 4])
def test_the_share_of_failed_rows_is_that_of_the_job(table: Table, lake: Lake, task_size: int | None) -> None:
    """No thread sees as many rows as the share is judged from."""
    with pytest.raises(FunctionFailed, match=r"function `of_sevens`: 4 of 30 rows failed, more than 10%.*another id"):
        table.backfill("score", udf=limited(0.1), job_id="monday", task_size=task_size)
    assert values(table, "score") == dict.fromkeys(range(30))
    assert len(table.get_errors("monday")) == 4
    with pytest.raises(FunctionFailed, match="4 of 30 rows"):  # it would commit what its checkpoints have
        table.backfill("score", udf=limited(0.1), job_id="monday", task_size=task_size)
    assert values(table, "score") == dict.fromkeys(range(30))
    assert table.backfill("score", udf=limited(0.15), job_id="tuesday", task_size=task_size).errors == 4
    assert values(table, "score") == EXPECTED
    folder = Path(lake.root) / "_work" / table._newest().entry.table_id
    assert not (folder / "tuesday").exists() and (folder / "monday" / "counts").is_dir()


def test_no_fragment_is_begun_after_the_share_is_too_large(table: Table) -> None:
    """With one thread that has one fragment after the other; the first has one bad row of ten."""
    with pytest.raises(FunctionFailed, match=r"1 of 10 rows failed, more than 5%"):
        table.backfill("score", udf=limited(0.05, 5), job_id="monday", concurrency=1)
    assert len(table.get_errors("monday")) == 1
