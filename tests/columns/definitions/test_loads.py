"""Rows that are loaded or changed beside computed columns: what these get, and values that are refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from json import dumps
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest

from deployer.errors import DeployerError, InvalidInput, Refused
from deployer.functions import skip, udf
from deployer.live.reader import live_table
from deployer.specs.types.computed import ComputedBySql
from deployer.state.model.files.computed_by import definitions_of
from deployer.table import Table, connect
from deployer.tables.admin.tables import update_table
from deployer.tables.ingest.rows.selects import select_of
from tests.columns.rows import SCHEMA, rows, values
from tests.spark.writes import Write
from tests.tables.lakes import Lake

HALVES = {i: i / 2 for i in range(30, 40)}


def added(table: Table, lake: Lake) -> None:
    table.add(rows(30, 40))


def dicts(table: Table, lake: Lake) -> None:
    table.add([{**row, "half": None} for row in rows(30, 40).to_pylist()])


def parquet(table: Table, lake: Lake) -> None:
    lake.ingest(lake.file(rows(30, 40)))


def csv(table: Table, lake: Lake) -> None:
    path = lake.folder / "rows.csv"
    pyarrow.csv.write_csv(rows(30, 40), path)
    lake.ingest(path)


def json(table: Table, lake: Lake) -> None:
    lines = [dumps(row, default=str) for row in rows(30, 40).to_pylist()]
    lake.ingest(lake.text("rows.jsonl", "\n".join(lines)))


def upserted(table: Table, lake: Lake) -> None:
    lake.ingest(lake.file(rows(30, 40)), mode="upsert")


def merged(table: Table, lake: Lake) -> None:
    table.merge(rows(30, 40))


def merged_with_nulls(table: Table, lake: Lake) -> None:
    table.merge(rows(30, 40).append_column("half", pa.nulls(10)))


def written_by_spark(table: Table, lake: Lake) -> None:
    """By both halves of Spark's writer, without Spark."""
    Write(lake, [rows(30, 34), rows(34, 40)]).run()


def upserted_by_spark(table: Table, lake: Lake) -> None:
    Write(lake, [rows(30, 40)], upsert="true").run()


LOADS: dict[str, Callable[[Table, Lake], None]] = {
    "add": added,
    "add dicts": dicts,
    "Parquet": parquet,
    "CSV": csv,
    "JSON": json,
    "upsert": upserted,
    "merge": merged,
    "merge with nulls": merged_with_nulls,
    "Spark": written_by_spark,
    "Spark's upsert": upserted_by_spark,
}


@pytest.mark.parametrize("load", LOADS)
def test_new_rows_are_null_until_a_backfill(load: str, table: Table, lake: Lake) -> None:
    table.add_columns({"half": "rating / 2"})
    LOADS[load](table, lake)
    assert set(values(table, "half").values()) == {None}
    assert len(values(table, "rating")) == 40


@pytest.mark.thinned(6, to="full")
@pytest.mark.parametrize("load", LOADS)
def test_new_rows_are_computed_on_load(load: str, table: Table, lake: Lake) -> None:
    table.add_columns({"half": "rating / 2"}, on_load=True)
    table.add_columns({"far": "half > 17"}, on_load=True)
    LOADS[load](table, lake)
    found = {i: half for i, half in values(table, "half").items() if i >= 30}
    assert found == HALVES
    assert {i for i, far in values(table, "far").items() if far} == {35, 36, 37, 38, 39}
    assert all(values(table, "half")[i] is None for i in range(30))


@udf(version="1")
def halved(rating: float) -> float:
    return rating / 2


@pytest.mark.thinned(3, to="full")
@pytest.mark.parametrize("load", LOADS)
def test_functions_that_this_process_packaged_compute_new_rows(load: str, table: Table, lake: Lake) -> None:
    table.add_columns({"half": halved}, on_load=True)
    LOADS[load](table, lake)
    assert {i: half for i, half in values(table, "half").items() if i >= 30} == HALVES


ROWS_LOADS = [name for name in LOADS if not name.startswith(("upsert", "merge")) and name != "Spark's upsert"]


@pytest.mark.parametrize("load", ROWS_LOADS)
def test_a_load_records_which_function_computed_its_rows(load: str, table: Table, lake: Lake) -> None:
    """So that they are shown by version, and a backfill leaves them alone."""
    table.add_columns({"half": halved}, on_load=True)
    before = lake.open().opened.state.files.count
    LOADS[load](table, lake)
    plan = table.plan_backfill("half")
    assert (plan.rows, plan.by_version) == (30, {"": 30, "1": 10})
    done = table.backfill("half")
    assert (done.rows, done.stats.fragments) == (30, before)
    assert table.plan_backfill("half").by_version == {"1": 40}
    assert values(table, "half") == {i: i / 2 for i in range(40)}


def test_rows_that_a_function_leaves_out_are_computed_by_a_backfill(table: Table, lake: Lake, tmp_path: Path) -> None:
    path, calm = str(tmp_path / "calls"), str(tmp_path / "calm")

    @udf(version="1", on_error=skip(ValueError))
    def fussy(id: int) -> float:
        with Path(path).open("a") as file:
            file.write(f"{id}\n")
        if id % 10 == 3 and not Path(calm).exists():
            raise ValueError("not now")
        return id / 2

    table.add_columns({"half": fussy}, on_load=True)
    table.backfill("half")
    table.add(rows(30, 40))
    table.add(rows(41, 43))
    plan = table.plan_backfill("half")
    assert (plan.by_version, plan.rows, plan.fragments) == ({"1": 32, "": 10}, 10, 1)
    Path(calm).touch()
    Path(path).unlink()
    assert table.backfill("half").stats.fragments == 1
    assert Path(path).read_text().split() == ["33"] and values(table, "half")[33] == 16.5
    assert table.backfill("half").stats.fragments == 0


@pytest.mark.spark
def test_tasks_of_spark_compute_new_rows(table: Table, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEPLOYER_TRUST_UDFS", "1")
    table.add_columns({"half": halved}, on_load=True)
    table.add_columns({"far": "half > 17"}, on_load=True)
    assert lake.ingest(lake.file(rows(30, 40)), engine="spark").rows == 10
    assert {i: half for i, half in values(table, "half").items() if i >= 30} == HALVES
    assert {i for i, far in values(table, "far").items() if far} == {35, 36, 37, 38, 39}
    assert table.plan_backfill("half").by_version == {"": 30, "1": 10}


def test_rows_of_a_merge_that_go_through_files_may_have_nulls(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deployer.tables.rows.merging.source_parts.PART_ROWS", 4)
    table.add_columns({"half": "rating / 2"}, on_load=True)
    table.merge(rows(30, 40).append_column("half", pa.nulls(10)))
    assert {i: half for i, half in values(table, "half").items() if i >= 30} == HALVES


def test_a_function_that_is_not_trusted_does_not_run(table: Table, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    @udf(version="1")
    def others(rating: float) -> float:
        raise AssertionError("it runs")

    table.add_columns({"half": others}, on_load=True)
    monkeypatch.setattr("deployer.functions.packages.stored._saved_here", set())
    version = table.version
    with pytest.raises(Refused, match="not trusted here") as caught:
        table.add(rows(30, 40))
    assert "on_load: false" in caught.value.remedy
    assert table.version == version
    monkeypatch.setenv("DEPLOYER_TRUST_UDFS", "1")
    with pytest.raises(DeployerError, match="it runs"):
        table.add(rows(30, 40))
    monkeypatch.delenv("DEPLOYER_TRUST_UDFS")
    with connect(lake.root, trust_udfs=True) as trusting, pytest.raises(DeployerError, match="it runs"):
        trusting.open_table("flights").update("id = 1", {"rating": 2.0})
    assert table.version == version


def with_half(count: int = 40) -> pa.Table:
    return rows(30, count).append_column("half", pa.array([1.0] * (count - 30)))


REFUSED: dict[str, Callable[[Table, Lake], object]] = {
    "add": lambda table, lake: table.add(with_half()),
    "Parquet": lambda table, lake: lake.ingest(lake.file(with_half())),
    "upsert": lambda table, lake: lake.ingest(lake.file(with_half()), mode="upsert"),
    "JSON": lambda table, lake: lake.ingest(lake.text("rows.jsonl", '{"id": 30, "half": 1.0}')),
    "a select": lambda table, lake: lake.ingest(lake.file(rows(30, 40)), selects=(select_of("rating AS half"),)),
    "merge": lambda table, lake: table.merge(with_half()),
    "Spark": lambda table, lake: Write(lake, [with_half()]).run(),
    "update": lambda table, lake: table.update("id = 1", {"half": 2.0}),
    "update by SQL": lambda table, lake: table.update("id = 1", values_sql={"half": "rating"}),
}


@pytest.mark.thinned(2, to="full")
@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("on_load", [True, False])
def test_values_of_a_computed_column_are_refused(case: str, on_load: bool, table: Table, lake: Lake) -> None:
    table.add_columns({"half": "rating / 2"}, on_load=on_load)
    version = table.version
    with pytest.raises(InvalidInput, match="'half' is computed by rating / 2") as caught:
        REFUSED[case](table, lake)
    assert "leave" in caught.value.remedy
    assert table.version == version


def test_fields_of_a_computed_column_are_left_out_where_extra_ones_are(table: Table, lake: Lake) -> None:
    table.add_columns({"half": "rating / 2"})
    lake.ingest(lake.file(with_half()), ignore_extra=True)
    assert values(table, "half")[30] is None


def changed_by_update(table: Table) -> None:
    table.update("id < 5", values_sql={"rating": "rating + 100"})


def changed_by_merge(table: Table) -> None:
    given = rows(0, 5)
    rating = pa.array([value.as_py() + 100 for value in given["rating"]])
    table.merge(given.select(["id"]).append_column("rating", rating))


CHANGES: dict[str, Callable[[Table], None]] = {"update": changed_by_update, "merge": changed_by_merge}


def computed_table(table: Table, *, on_load: bool) -> None:
    """`half` and `far`, computed for all rows by loads, and `length`, which reads another column."""
    table.add_columns({"half": "rating / 2"}, on_load=True)
    table.add_columns({"far": "half > 17", "length": "length(name)"}, on_load=True)
    table.delete("true", allow_destroy=True)
    table.add(rows(0, 10))
    if not on_load:
        table.alter_columns(*({"path": name, "on_load": False} for name in ("half", "far", "length")))


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_input_makes_what_reads_it_null(change: str, table: Table) -> None:
    computed_table(table, on_load=False)
    CHANGES[change](table)
    assert values(table, "half") == {i: None if i < 5 else i / 2 for i in range(10)}
    assert values(table, "far") == {i: None if i < 5 else False for i in range(10)}
    assert values(table, "length") == dict.fromkeys(range(10), 6)


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_input_is_computed_again_on_load(change: str, table: Table) -> None:
    computed_table(table, on_load=True)
    CHANGES[change](table)
    assert values(table, "half") == {i: (i + 100) / 2 if i < 5 else i / 2 for i in range(10)}
    assert values(table, "far") == {i: i < 5 for i in range(10)}
    assert values(table, "length") == dict.fromkeys(range(10), 6)


def given(changed: int) -> pa.Table:
    """All of the ten rows, of which the first get another rating, and one a null for a name."""
    there = rows(0, 10).to_pylist()
    for row in there[:changed]:
        row["rating"] += 100
    there[9]["name"] = None
    return pa.Table.from_pylist(there, rows(0, 1).schema).select(["id", "rating", "name"])


def merged_equal(table: Table, changed: int) -> None:
    table.merge(given(changed))


def updated_equal(table: Table, changed: int) -> None:
    name = "CASE WHEN id = 9 THEN NULL ELSE name END"
    table.update(values_sql={"rating": f"rating + CASE WHEN id < {changed} THEN 100 ELSE 0 END", "name": name})


@pytest.mark.parametrize("changed", [0, 4])
@pytest.mark.parametrize("change", [merged_equal, updated_equal])
@pytest.mark.parametrize("on_load", [False, True], ids=["by backfills", "on load"])
def test_equal_values_of_inputs_leave_what_is_computed(
    on_load: bool, change: Callable[[Table, int], None], changed: int, table: Table
) -> None:
    computed_table(table, on_load=on_load)
    change(table, changed)
    new = {i: (i + 100) / 2 if on_load else None for i in range(changed)}
    assert values(table, "half") == {i: i / 2 for i in range(10)} | new
    assert values(table, "far") == dict.fromkeys(range(10), False) | dict.fromkeys(new, True if on_load else None)
    assert values(table, "length") == dict.fromkeys(range(9), 6) | {9: None}
    assert values(table, "rating") == {i: i + 100.0 if i < changed else float(i) for i in range(10)}


def shares(table: Table, name: str) -> str:
    [info] = [each for each in table.list_computed_columns() if each.name == name]
    return info.summary.replace(info.version, "now")


@pytest.mark.parametrize("load", ["add", "Parquet"])
def test_files_of_a_load_say_what_computed_them(load: str, table: Table, lake: Lake) -> None:
    table.add_columns({"half": "rating / 2", "third": "rating / 3"}, on_load=True)
    table.add_columns({"quarter": "rating / 4"})
    LOADS[load](table, lake)
    assert shares(table, "half") == "25% by version now, 75% not computed"
    assert shares(table, "third") == "25% by version now, 75% not computed"
    assert shares(table, "quarter") == "100% not computed"


@pytest.mark.parametrize("change", CHANGES)
def test_files_of_changed_rows_do_not_hide_values_of_an_older_definition(change: str, table: Table, lake: Lake) -> None:
    """A backfill of version 2 has to see that the rows which are written again still have values of version 1."""
    table.add_columns({"half": "rating / 2", "length": "length(name)"}, on_load=True)
    table.delete("true", allow_destroy=True)
    table.add(rows(0, 10))
    table.alter_columns({"path": "length", "udf": "length(name) + 1"})
    CHANGES[change](table)
    opened = lake.open().opened
    field = next(each.id() for each in opened.dataset().lance_schema.fields() if each.name() == "length")
    before = ComputedBySql("length(name)").identity
    found = {definitions_of(file.computed)[field] for file in opened.state.files}
    assert found == {(before,), ("", before)}
    rebuilt = [definitions_of(file.computed)[field] for file in opened.refreshed().state.files]
    assert set(rebuilt) == found


def test_a_rewrite_keeps_definitions_and_what_they_computed(table: Table, lake: Lake) -> None:
    table.add_columns({"half": "rating / 2", "third": "rating / 3"}, on_load=True)
    table.delete("true", allow_destroy=True)
    table.add(rows(0, 10))
    table.drop_columns(["third"])  # so that field ids are others in the new dataset
    before = values(table, "half")
    opened = lake.open().opened
    spec = live_table(opened.entry, opened.state).spec
    update_table(lake.store, lake.root, opened.entry.table_id, replace(spec, sort_keys=("rating",)))
    assert table.schema.names == [*SCHEMA.names, "half"]
    assert shares(table, "half") == "100% by version now"
    assert values(table, "half") == before


def test_a_wider_row_key_makes_what_reads_it_stale(table: Table, lake: Lake) -> None:
    table.add_columns({"double": "id * 2"}, on_load=True)
    table.delete("true", allow_destroy=True)
    table.add(rows(0, 10))
    table.alter_columns({"path": "id", "data_type": "int64"})
    [info] = table.list_computed_columns()
    assert info.is_stale
    assert info.summary == f"100% by version {info.version} (stale)"
    assert values(table, "double") == {i: i * 2 for i in range(10)}


def test_a_row_that_an_expression_fails_for_is_a_bad_row(table: Table) -> None:
    table.add_columns({"share": "CAST(name AS INT)"}, on_load=True)
    version = table.version
    with pytest.raises(Refused, match="cannot be computed by CAST"):
        table.add(rows(30, 40))
    assert table.version == version


def test_loads_of_columns_do_not_write_a_computed_one(table: Table, lake: Lake) -> None:
    table.add_columns({"half": "rating / 2"})
    source: Any = pa.table({"id": pa.array(range(30)), "half": pa.array([1.0] * 30)})
    with pytest.raises(InvalidInput, match="half"):
        table.load_columns(str(lake.file(source)), "id", ["half"])
    assert SCHEMA.names == table.schema.names[:-1]
