"""`alter_columns`: definitions, names, types and nullability, and what they do to columns that are computed."""

from __future__ import annotations

from typing import Any

import pytest

from deployer.errors import DeployerError, Refused
from deployer.specs.types.arrow import computed_of
from deployer.specs.types.computed import Computed, ComputedBySql
from deployer.table import Table
from tests.columns.rows import values
from tests.tables.lakes import Lake


def definition(table: Table, name: str) -> Computed:
    found = computed_of(table.schema.field(name))
    assert found is not None
    return found


@pytest.fixture
def halves(table: Table) -> Table:
    """The table with `half` of `rating`, and `far`, which reads `half`."""
    table.add_columns({"half": "rating / 2"})
    table.add_columns({"far": "half > 5"})
    return table


def test_another_expression_makes_the_column_and_its_readers_stale(halves: Table, lake: Lake) -> None:
    before, files = {name: definition(halves, name) for name in ("half", "far")}, lake.data_files()
    halves.alter_columns({"path": "half", "udf": "rating / 3"})
    assert definition(halves, "half") == ComputedBySql("rating / 3", ("rating",))
    assert definition(halves, "far").identity != before["far"].identity
    assert definition(halves, "far") == before["far"]
    assert lake.data_files() == files


def test_the_same_expression_written_otherwise_makes_nothing_stale(halves: Table) -> None:
    before = {name: definition(halves, name).identity for name in ("half", "far")}
    halves.alter_columns({"path": "half", "udf": '"rating"/2', "on_load": True}, {"path": "far", "on_load": True})
    assert {name: definition(halves, name).identity for name in before} == before
    assert definition(halves, "far").on_load


@pytest.mark.parametrize("name", ["score", "Score 2", "select"])
def test_a_renamed_input_is_carried_into_definitions(halves: Table, name: str) -> None:
    before = definition(halves, "half")
    halves.alter_columns({"path": "rating", "rename": name})
    after = definition(halves, "half")
    assert after.inputs == (name,)
    assert after.identity == before.identity
    shown = name if name == "score" else f'"{name}"'
    assert isinstance(after, ComputedBySql)
    assert after.sql == f"{shown} / 2"


def test_a_renamed_computed_column_keeps_its_definition(halves: Table) -> None:
    before = definition(halves, "half")
    halves.alter_columns({"path": "half", "rename": "part"})
    assert definition(halves, "part") == before
    assert definition(halves, "far").inputs == ("part",)


def test_an_input_of_another_type_makes_its_readers_stale(halves: Table) -> None:
    before = {name: definition(halves, name) for name in ("half", "far")}
    halves.alter_columns({"path": "rating", "data_type": "float32", "using": "CAST(rating AS FLOAT)"})
    after = {name: definition(halves, name) for name in before}
    assert after == before
    assert all(after[name].identity != before[name].identity for name in before)
    assert all(after[name].version == before[name].version for name in before)


def test_a_plain_column_is_computed_from_now_on_and_keeps_its_values(table: Table) -> None:
    before = values(table, "name")
    table.alter_columns({"path": "name", "udf": "concat('id ', CAST(id AS VARCHAR))"})
    assert values(table, "name") == before
    assert definition(table, "name").inputs == ("id",)


def test_names_nullability_and_types_change_without_definitions(table: Table) -> None:
    table.alter_columns(
        {"path": "rating", "nullable": False}, {"path": "id", "rename": "key"}, {"path": "name", "rename": "label"}
    )
    assert table.schema.names == ["key", "label", "day", "at", "rating"]
    assert table.row_keys == ("key",)
    assert not table.schema.field("rating").nullable


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown column": ({"path": "ratin", "rename": "x"}, "the table has no column 'ratin'"),
    "nothing": ({"path": "half"}, "is not an alteration"),
    "an unknown part": ({"path": "half", "name": "x"}, "has an unknown part 'name'"),
    "a name that is there": ({"path": "half", "rename": "name"}, "name"),
    "itself": ({"path": "half", "udf": "half + 1"}, "no field named half"),
    "a circle": ({"path": "half", "udf": "CASE WHEN far THEN 1.0 END"}, "read each other: half → far → half"),
    "never null": ({"path": "half", "nullable": False}, "may not be null"),
    "a row key": ({"path": "id", "udf": "1"}, "is a row key"),
    "on load of a plain column": ({"path": "name", "on_load": True}, "is not computed"),
    "a type that loses values": ({"path": "rating", "data_type": "int32"}, "values may be lost"),
    "on load after one that is not": ({"path": "far", "on_load": True}, "is computed on load and reads half"),
    "no type": ({"path": "rating", "data_type": 4}, "is not a type"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_changes_nothing(case: str, halves: Table) -> None:
    alteration, message = BAD[case]
    version = halves.version
    with pytest.raises(DeployerError, match=message) as caught:
        halves.alter_columns({"path": "day", "rename": "date"}, alteration)
    assert caught.value.remedy
    assert halves.version == version


def test_a_new_name_that_cannot_be_written_into_an_expression_is_refused(table: Table) -> None:
    table.add_columns({"early": "CASE WHEN day < DATE '2020-01-10' THEN 1 END"})
    table.alter_columns({"path": "day", "rename": "date"})  # it may be quoted
    assert definition(table, "early").inputs == ("date",)
    table.alter_columns({"path": "name", "rename": "time"})
    table.add_columns({"first": "concat(time, CAST(CAST(at AS TIMESTAMP WITH TIME ZONE) AS VARCHAR))"})
    with pytest.raises(Refused, match="column time is an input of first, and a new name cannot be written"):
        table.alter_columns({"path": "time", "rename": "label"})
