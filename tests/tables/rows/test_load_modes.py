"""Loads that take the place of rows: `ingest --mode upsert` and `overwrite`."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from deployer.errors import InvalidInput, Refused
from deployer.specs.model import Storage
from deployer.state.model.entities import RowCounts
from deployer.tables.ingest.request import IngestRequest
from tests.tables.lakes import FLIGHTS, Lake, flights, sorted_rows
from tests.tables.rows.test_delete import differences, filled

OPTIONS: dict[str, dict[str, Any]] = {
    "keyed": {},
    "keyless": {"row_keys": ()},
    "stable row ids": {"storage": Storage(stable_row_ids=True)},
    "unique keys": {"unique": True},
}
ON = ("carrier", "flight")


def later(rows: int, start: int) -> pa.Table:
    values = pa.array([(7 * i) % 100 for i in range(rows)], pa.int16())
    return flights(rows, start).set_column(2, FLIGHTS.field(2), values)


def rows_of(lake: Lake) -> list[dict[str, Any]]:
    return sorted_rows(lake.open().scan().to_table())


@pytest.mark.parametrize("case", OPTIONS)
def test_an_upsert_replaces_rows_by_their_keys(lake: Lake, case: str) -> None:
    table, source = filled(lake, 200, **OPTIONS[case]), later(60, 170)
    on = () if table.row_keys else ON
    result = lake.ingest(lake.file(source), mode="upsert", on=on, job_id="u")
    assert rows_of(lake) == sorted_rows(pa.concat_tables([flights(170), source]))
    assert (result.rows, result.counts) == (60, RowCounts(inserted=30, updated=30))
    assert differences(lake) == [] and all(file.partition for file in lake.open().opened.state.files)
    again = lake.ingest(lake.file(flights(5)), mode="upsert", on=on, job_id="x")
    assert again.counts == RowCounts(updated=5)
    job = lake.open().opened.state.jobs["u"]
    assert (job.kind, job.rows, bool(job.sources)) == ("upsert", 60, True)


@pytest.mark.parametrize("case", OPTIONS)
def test_an_overwrite_replaces_all_rows_once(lake: Lake, case: str) -> None:
    table, source = filled(lake, 200, **OPTIONS[case]), lake.file(flights(50, 100))
    result = lake.ingest(source, mode="overwrite", job_id="o")
    assert rows_of(lake) == sorted_rows(flights(50, 100)) and differences(lake) == []
    assert (result.rows, result.counts) == (50, RowCounts(inserted=50, deleted=200))
    lake.ingest(lake.file(flights(7)), job_id="later")
    assert lake.ingest(source, mode="overwrite", job_id="o").already_done
    assert lake.open().count() == 57
    assert lake.open().scan(at=table.state.lance_version).to_table().num_rows == 200


def test_a_row_takes_the_place_of_all_that_have_its_key(lake: Lake) -> None:
    filled(lake, 100)
    lake.ingest(lake.file(flights(10)))
    result = lake.ingest(lake.file(later(10, 0)), mode="upsert")
    assert result.counts == RowCounts(updated=10, deleted=10)
    assert rows_of(lake) == sorted_rows(pa.concat_tables([later(10, 0), flights(90, 10)]))


def test_keys_that_are_twice_in_the_load_are_refused(lake: Lake) -> None:
    table, files = filled(lake, 50), lake.data_files()
    twice = pa.concat_tables([flights(5), flights(5)])
    with pytest.raises(Refused, match=r"in more than one of the rows \(first: \(carrier="):
        lake.ingest(lake.file(twice), mode="upsert")
    assert lake.open().opened.state == table.state and lake.data_files() == files


def test_a_load_without_rows_does_not_empty_a_protected_table(lake: Lake) -> None:
    table = filled(lake, 50)
    with pytest.raises(Refused, match="would remove all 50 rows of the table, which is protected"):
        lake.ingest(lake.file(flights(0)), mode="overwrite")
    assert lake.open().opened.state == table.state


def test_what_others_add_first_is_replaced_too(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    from deployer.tables.rows import commit

    filled(lake, 50)
    begun, others = commit.RowJob._begun, [lambda: lake.ingest(lake.file(flights(20, 60)))]

    def late(self: Any, *arguments: Any) -> Any:
        if others:
            others.pop()()
        return begun(self, *arguments)

    monkeypatch.setattr(commit.RowJob, "_begun", late)
    result = lake.ingest(lake.file(later(30, 40)), mode="upsert")
    assert result.counts == RowCounts(inserted=10, updated=20, deleted=0) and differences(lake) == []
    assert rows_of(lake) == sorted_rows(pa.concat_tables([flights(40), later(30, 40), flights(10, 70)]))


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"on": ("carrier",)}, "--on is given without --mode upsert"),
        ({"mode": "upsert", "on_duplicate": "skip"}, "--on-duplicate skip is given with --mode upsert"),
    ],
)
def test_options_that_do_not_go_together(request_: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        IngestRequest(("a.csv",), **request_)


def test_an_upsert_needs_keys(lake: Lake) -> None:
    filled(lake, 10, row_keys=())
    files = lake.data_files()
    with pytest.raises(InvalidInput, match="has no row keys that rows could be matched by"):
        lake.ingest(lake.file(flights(5)), mode="upsert")
    with pytest.raises(InvalidInput, match="no column 'carier'; did you mean 'carrier'"):
        lake.ingest(lake.file(flights(5)), mode="upsert", on=("carier",))
    assert lake.data_files() == files


@pytest.mark.spark
@pytest.mark.parametrize("case", ["keyed", "keyless"])
def test_spark_replaces_rows_too(lake: Lake, case: str, spark: Any) -> None:
    filled(lake, 200, **OPTIONS[case])
    source = later(60, 170)
    result = lake.ingest(lake.file(source), mode="upsert", on=ON, engine="spark")
    assert result.counts == RowCounts(inserted=30, updated=30)
    assert rows_of(lake) == sorted_rows(pa.concat_tables([flights(170), source]))
    lake.ingest(lake.file(flights(40)), mode="overwrite", engine="spark")
    assert rows_of(lake) == sorted_rows(flights(40)) and differences(lake) == []
