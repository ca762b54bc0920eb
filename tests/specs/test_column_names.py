"""Which names columns may have, tried on Lance itself, and how lists and SQL name them."""

from __future__ import annotations

import uuid
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deployer.errors import InvalidInput
from deployer.specs.rules import Rule
from deployer.specs.types.column_names import alike, listed, name_fault, path_fault, quoted, split_names
from deployer.tables.conversion.sql_values import values_of
from deployer.tables.read.key_values import Interval
from deployer.tables.read.where_ranges import ranges_in
from tests.column_names import NAMES


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_name_that_lance_stores_is_taken(name: str) -> None:
    assert name_fault(name) is None
    assert path_fault(f"{name}.{name}") is None


@pytest.mark.parametrize(
    ("name", "what", "remedy"),
    [
        pytest.param("", "the name is empty", "write a name", id="empty"),
        pytest.param("a.b", "the name `a.b` has a dot", "write `a_b`", id="dot"),
        pytest.param("a`b", "has a backtick", "write '", id="backtick"),
        pytest.param("a\nb", "U+000A", "leave it out", id="line-end"),
        pytest.param("a\tb", "U+0009", "leave it out", id="tab"),
        pytest.param("a\x00b", "U+0000", "leave it out", id="nul"),
        pytest.param("a\u200bb", "U+200B", "leave it out", id="zero-width-space"),
        pytest.param("a\u202eb", "U+202E", "leave it out", id="right-to-left"),
        pytest.param("x" * 256, "has 256 characters", "use at most 255", id="long"),
    ],
)
def test_why_a_name_is_refused(name: str, what: str, remedy: str) -> None:
    for fault in (name_fault(name), name_fault(name, nested=True)):
        assert fault is not None
        assert what in fault.what
        assert remedy in fault.remedy
        assert fault.rule is Rule.BAD_TEXT


def test_lances_own_names_are_refused_at_the_top_level_alone() -> None:
    fault = name_fault("_RowId")
    assert fault is not None
    assert fault.rule is Rule.RESERVED_NAME
    assert name_fault("_rowid", nested=True) is None
    star = name_fault("*")
    assert star is not None
    assert star.rule is Rule.RESERVED_NAME


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param("Total", "TOTAL", id="case"),
        pytest.param("Gr\u00f6\u00dfe", "gro\u0308\u00dfe", id="unicode-form"),
    ],
)
def test_names_that_look_the_same_are_alike(one: str, other: str) -> None:
    assert alike(one) == alike(other)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        pytest.param("id,Total Amount", ("id", "Total Amount"), id="space-inside"),
        pytest.param(" id , name ", ("id", "name"), id="spaces-around"),
        pytest.param('id,"Amount, net"', ("id", "Amount, net"), id="comma"),
        pytest.param('" lead ", "5"" disk"', (" lead ", '5" disk'), id="quotes"),
        pytest.param('5" disk,id', ('5" disk', "id"), id="quote-inside"),
        pytest.param("数量,🍕", ("数量", "🍕"), id="alphabets"),
    ],
)
def test_a_list_of_names_is_split(text: str, names: tuple[str, ...]) -> None:
    assert split_names(text, "--columns") == names


@pytest.mark.parametrize("text", ["", "a,", ",a", "a,,b", '"a', '"a"b'])
def test_a_list_with_a_fault_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="--columns"):
        split_names(text, "--columns")


_THREE = pa.scalar(3, pa.int64())
_ANY = st.text(min_size=1, max_size=30).filter(lambda name: name_fault(name) is None)


@given(st.lists(_ANY, min_size=1, max_size=5))
def test_a_list_is_split_into_what_was_listed(names: list[str]) -> None:
    assert split_names(listed(names), "") == tuple(names)


@given(_ANY)
def test_quotes_have_no_way_out(name: str) -> None:
    assert quoted(name) == f"`{name}`"
    assert quoted(f"{name}.{name}") == f"`{name}`.`{name}`"
    assert "`" not in name


@given(_ANY)
def test_datafusion_reads_the_quoted_name_as_the_column(name: str) -> None:
    schema = pa.schema([(name, pa.int64()), ("other" if name != "other" else "another", pa.int64())])
    assert ranges_in(f"{quoted(name)} = 3", schema, schema.names) in ({name: Interval(_THREE, _THREE)}, {})
    rows = pa.RecordBatch.from_arrays([pa.array([1, 2]), pa.array([10, 20])], schema=schema)
    for text in (quoted(name), '"' + name.replace('"', '""') + '"'):
        assert values_of(rows, f"{text} + 1", pa.int64()).to_pylist() == [2, 3]


@settings(max_examples=20)
@given(_ANY)
def test_lance_reads_the_quoted_name_as_the_column(name: str) -> None:
    other = "other" if name != "other" else "another"
    rows = pa.table({name: [1, 2, 3], other: [{name: 3}, {name: 2}, {name: 2}]})
    dataset = lance.write_dataset(rows, f"memory://{uuid.uuid4().hex}")
    assert dataset.count_rows(filter=f"{quoted(name)} > 1") == 2
    assert dataset.count_rows(filter=f"{quoted(f'{other}.{name}')} > 2") == 1


def test_what_is_not_a_name_is_not_quoted() -> None:
    with pytest.raises(InvalidInput, match="backtick"):
        quoted("a` OR `b")


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_lance_finds_a_column_and_a_field_by_their_quoted_names(tmp_path: Path, name: str) -> None:
    values = [{name: number} for number in range(3)]
    table = pa.table({name: range(3), "other": values})
    dataset = lance.write_dataset(table, tmp_path / "t.lance")
    assert dataset.schema == table.schema
    assert dataset.count_rows(filter=f"{quoted(name)} > 0") == 2
    assert dataset.count_rows(filter=f"{quoted(f'other.{name}')} > 0") == 2
    assert dataset.to_table(columns={"it": quoted(f"other.{name}")})["it"].to_pylist() == [0, 1, 2]
