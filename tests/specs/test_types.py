from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployer.errors import InvalidInput
from deployer.specs.serialized.specs import column_from_json, column_to_json
from deployer.specs.types.arrow import arrow_schema, columns_of
from deployer.specs.types.names import INSTEAD, NAMES
from deployer.specs.types.parser import BadType, parse_type, read_type
from deployer.specs.types.types import (
    Blob,
    Column,
    ColumnType,
    FixedSizeList,
    ListOf,
    MapOf,
    Scalar,
    Struct,
    format_type,
)

from .type_strategies import any_names, tables_of, types

TEXTS: dict[str, tuple[str, ColumnType]] = {
    "white space": (" list < string not null > ", ListOf(Column("item", Scalar("string"), False))),
    "vector": ("vector<float32,3>", FixedSizeList(Column("item", Scalar("float32")), 3)),
    "map keys are never null": (
        "map<string, blob>",
        MapOf(Column("key", Scalar("string"), False), Column("value", Blob())),
    ),
    "quoted fields": (
        'struct<"a b": int8, c: null>',
        Struct((Column("a b", Scalar("int8")), Column("c", Scalar("null")))),
    ),
    "zone": ("timestamp[ ns , Etc/GMT+5 ]", Scalar("timestamp", ("ns", "Etc/GMT+5"))),
    "decimal": ("decimal128( 10 ,-2 )", Scalar("decimal128", (10, -2))),
}


@pytest.mark.parametrize("case", TEXTS)
def test_texts_are_read(case: str) -> None:
    text, expected = TEXTS[case]
    assert parse_type(text) == expected


@given(types())
def test_types_come_back_from_their_text(column_type: ColumnType) -> None:
    assert parse_type(format_type(column_type)) == column_type


@given(types(names=any_names))
def test_any_name_of_a_field_comes_back(column_type: ColumnType) -> None:
    assert parse_type(format_type(column_type)) == column_type


@given(
    st.text(max_size=30) | st.lists(st.sampled_from([*NAMES, *"<>[](),: ", "not null", "3"]), max_size=12).map("".join)
)
def test_any_text_is_a_type_or_says_why_not(text: str) -> None:
    read = read_type(text)
    if isinstance(read, BadType):
        assert read.what
        assert read.remedy
        with pytest.raises(InvalidInput):
            parse_type(text)
    else:
        assert parse_type(format_type(read)) == read


@given(tables_of())
def test_columns_come_back_from_arrow(columns: tuple[Column, ...]) -> None:
    schema = arrow_schema(columns)
    assert columns_of(schema) == columns
    assert columns_of(pa.ipc.read_schema(schema.serialize())) == columns


@given(tables_of())
def test_columns_come_back_from_json(columns: tuple[Column, ...]) -> None:
    for column in columns:
        assert column_from_json(column_to_json(column)) == column


FOREIGN = {
    "string_view": pa.string_view(),
    "list_view": pa.list_view(pa.int32()),
    "interval": pa.month_day_nano_interval(),
    "run ends": pa.run_end_encoded(pa.int32(), pa.string()),
    "union": pa.sparse_union([pa.field("a", pa.int32())]),
    "decimal32": pa.decimal32(5, 2),
    "nested": pa.list_(pa.struct([("a", pa.binary_view())])),
    "extension": pa.bool8(),
    "dictionary of lists": pa.dictionary(pa.int32(), pa.list_(pa.int32())),
}


@pytest.mark.parametrize("case", FOREIGN)
def test_arrow_types_that_tables_cannot_have_are_refused(case: str) -> None:
    with pytest.raises(InvalidInput, match="column `"):
        columns_of(pa.schema([("c", FOREIGN[case])]))


def test_names_of_items_do_not_matter() -> None:
    """Spark names the items of lists `element`, Arrow `item`."""
    element = pa.list_(pa.field("element", pa.int32(), nullable=False))
    assert columns_of(pa.schema([("c", element)])) == (Column("c", parse_type("list<int32 not null>")),)


@pytest.mark.parametrize("name", sorted(INSTEAD))
def test_names_from_elsewhere_are_no_types_and_get_advice(name: str) -> None:
    read = read_type(name)
    assert isinstance(read, BadType)
    assert read.remedy.startswith("use ")
