"""`add_columns` with SQL: what the table, other readers and a restore have afterwards, and what is refused."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import lance
import pyarrow as pa
import pytest

from deployer.errors import DeployerError, InvalidFunction, Refused
from deployer.live.reader import live_table
from deployer.specs.types.computed import ComputedBySql
from deployer.specs.types.types import Column, Scalar
from deployer.table import Table, connect
from tests.columns.fills import fill
from tests.columns.rows import rows
from tests.tables.lakes import Lake


def test_a_column_is_added_as_null_in_one_version_without_a_data_file(table: Table, lake: Lake) -> None:
    before, version = lake.data_files(), table.version
    table.add_columns({"half": "rating / 2", "label": "concat(name, '!')"})
    assert table.version == version + 1
    assert lake.data_files() == before
    assert table.to_arrow(["half", "label"]).to_pylist() == [{"half": None, "label": None}] * 30


def test_the_definition_is_in_the_schema_that_other_readers_see(table: Table, lake: Lake) -> None:
    table.add_columns({"half": "rating / 2"})
    field = lance.dataset(lake.open().opened.location).schema.field("half")
    assert field.type == pa.float64()
    assert field.metadata[b"deployer:computed"] == b'{"sql": "rating / 2", "inputs": ["rating"]}'
    opened = lake.open().opened
    live = live_table(opened.entry, opened.state).spec.columns[-1]
    assert live == Column("half", Scalar("float64"), computed=ComputedBySql("rating / 2", ("rating",)))
    assert live.computed is not None
    assert live.computed.inputs == ("rating",)


def test_a_computed_column_may_read_another(table: Table) -> None:
    table.add_columns({"half": "rating / 2"}, on_load=True)
    table.add_columns({"quarter": "half / 2"})
    half, quarter = table.list_computed_columns()
    assert (quarter.inputs, quarter.on_load, half.on_load) == (("half",), False, True)
    assert quarter.summary == "100% not computed"


BAD: dict[str, tuple[Any, str]] = {
    "unknown column": ({"half": "ratin / 2"}, "no field named ratin"),
    "not SQL": ({"half": "rating / "}, "is not one SQL expression"),
    "two values": ({"half": "rating, id"}, "a second expression"),
    "an aggregate": ({"half": "sum(rating)"}, "an aggregate"),
    "no type": ({"half": "NULL"}, "has no type"),
    "there already": ({"rating": "rating / 2"}, "rating"),
    "a name of Lance": ({"_rowid": "rating / 2"}, "_rowid"),
    "capitals": ({"Rating": "rating / 2"}, "rating"),
    "empty": ({"half": " "}, "the SQL is empty"),
    "none": ({}, "no columns are given"),
    "a number": ({"half": 2}, "int is not a transform"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_is_a_value_error_that_changes_nothing(case: str, table: Table) -> None:
    transforms, message = BAD[case]
    version = table.version
    with pytest.raises(ValueError, match=message) as caught:
        table.add_columns(transforms)
    assert isinstance(caught.value, InvalidFunction)
    assert caught.value.remedy
    assert table.version == version


def test_of_several_columns_with_a_bad_one_none_is_added(table: Table) -> None:
    with pytest.raises(InvalidFunction):
        table.add_columns({"half": "rating / 2", "bad": "nothing / 2"})
    assert table.schema.names == ["id", "name", "day", "at", "rating"]


def test_arguments_without_a_meaning_are_reported(table: Table) -> None:
    with pytest.warns(UserWarning, match="use_gpus has no meaning here"):
        table.add_columns({"half": "rating / 2"}, use_gpus=4)
    assert "half" in table.schema.names


def test_a_large_table_takes_no_longer(tmp_path: Any) -> None:
    """Nothing of it depends on rows: 2 M rows in 20 fragments, and no file is written."""
    lake = Lake(tmp_path)
    lake.table(pa.schema([pa.field("id", pa.int64(), nullable=False)]), row_keys=("id",), splits=())
    with connect(lake.root) as connection:
        table = connection.open_table("flights")
        for start in range(0, 2_000_000, 100_000):
            table.add(pa.table({"id": pa.array(range(start, start + 100_000), pa.int64())}))
        before = lake.data_files()
        spent = []
        for number in range(5):
            since = time.process_time()
            table.add_columns({f"double_{number}": "id * 2"})
            spent.append(time.process_time() - since)
        assert lake.data_files() == before
    assert min(spent) < 0.5, f"CPU seconds: {spent}"


def test_a_dropped_column_is_gone_with_its_index(table: Table) -> None:
    table.create_scalar_index("rating")
    table.drop_columns(["rating", "name"])
    assert table.schema.names == ["id", "day", "at"]
    assert table.list_indices() == []


def _drop(*names: str) -> Callable[[Table], None]:
    return lambda table: table.drop_columns([*names])


REFUSED: dict[str, tuple[Callable[[Table], None], str]] = {
    "an input": (_drop("rating"), "column rating is an input of half, which is computed from it"),
    "an input of two": (_drop("half"), "column half is an input of quarter"),
    "a row key": (_drop("id"), "column id is a row key"),
    "an unknown one": (_drop("ratin"), "the table has no column 'ratin'"),
    "none": (_drop(), "no columns are named"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_column_that_is_needed_is_not_dropped(case: str, table: Table) -> None:
    table.add_columns({"half": "rating / 2"})
    table.add_columns({"quarter": "half / 2"})
    version = table.version
    act, message = REFUSED[case]
    with pytest.raises(DeployerError, match=message) as caught:
        act(table)
    assert caught.value.remedy
    assert table.version == version


def test_an_input_is_dropped_with_what_is_computed_from_it(table: Table) -> None:
    table.add_columns({"half": "rating / 2"})
    table.drop_columns(["half", "rating"])
    assert table.schema.names == ["id", "name", "day", "at"]


def test_columns_that_a_run_writes_are_not_changed(table: Table, lake: Lake) -> None:
    from deployer.runs.records import begin_runs

    table.add_columns({"half": "rating / 2"})
    table_id = lake.open().opened.entry.table_id
    [held] = begin_runs(lake.store, [table_id], "LOAD_COLUMNS", cause="a test", target=("half",), job="j")
    for name in ("half", "rating"):
        with pytest.raises(DeployerError, match=f"run {held.run_id} of LOAD_COLUMNS is writing half"):
            table.alter_columns({"path": name, "rename": "other"})
    held.finish()
    table.alter_columns({"path": "rating", "rename": "other"})
    assert "other" in table.schema.names


def test_shares_by_version_are_shown(table: Table, lake: Lake) -> None:
    table.add_columns({"double": "CAST(id * 2 AS BIGINT)"})
    [info] = table.list_computed_columns()
    field = table.schema.field("double")
    first = ComputedBySql("CAST(id * 2 AS BIGINT)", ("id",)).identity
    fill(lake, "double", first, 2)
    table.add(rows(30, 40).drop_columns(["rating"]))
    [info] = table.list_computed_columns()
    assert field.type == pa.int64()
    assert info.summary == f"75% by version {info.version}, 25% not computed"
    table.alter_columns({"path": "double", "udf": "CAST(id * 3 AS BIGINT)"})
    [info] = table.list_computed_columns()
    assert info.is_stale
    assert info.summary == f"75% by version {first.partition('-')[0]} (stale), 25% not computed"


def test_an_error_names_the_table(table: Table) -> None:
    with pytest.raises(Refused) as caught:
        table.drop_columns(["id"])
    assert caught.value.where == "table/air.flights"
