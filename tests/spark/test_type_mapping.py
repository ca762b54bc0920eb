"""Types of tables as Spark's and back, and values in the types in which Spark takes them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from inspect import signature
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as spark
from pyspark.sql.pandas.types import to_arrow_type

from deployer.errors import InvalidInput
from deployer.spark.exchange import exchanged
from deployer.spark.type_mapping import column_of, exchange_type, spark_schema, spark_type
from deployer.specs.types.arrow import arrow_field
from deployer.specs.types.parser import parse_type
from deployer.specs.types.table import TYPE_ROWS
from deployer.specs.types.types import Column
from tests.spark.expected import as_spark
from tests.values import ALSO_STORED, array, nullable

NEW_YEAR = dt.datetime(1, 1, 1)  # noqa: DTZ001 (a local time)
#: Release 4.0 has timestamps in UTC alone.
IN_UTC: dict[str, Any] = {"timezone": "UTC"} if "timezone" in signature(to_arrow_type).parameters else {}
TYPES = [row.text for row in TYPE_ROWS] + list(ALSO_STORED)


@pytest.mark.parametrize("text", TYPES)
def test_a_type_comes_back(text: str) -> None:
    column = Column("c", parse_type(text), description="a column")
    assert column_of(spark_schema([column]).fields[0]) == column


@pytest.mark.parametrize("text", TYPES)
def test_values_are_exchanged_in_the_type_that_spark_expects(text: str) -> None:
    kind = parse_type(text)
    assert exchange_type(kind) == to_arrow_type(spark_type(kind), **IN_UTC)


@pytest.mark.parametrize("text", TYPES)
def test_values_are_those_of_the_table(text: str) -> None:
    column = Column("c", parse_type(text))
    values = array(arrow_field(column).type, [nullable(column, i) for i in range(50)])
    batch = pa.RecordBatch.from_arrays([values], ["c"]).slice(3, 40)
    target = pa.schema([pa.field("c", exchange_type(column.type))])
    found = exchanged(batch, target, "table/a.b").column(0)
    assert found.type == target.field(0).type
    found.validate(full=True)
    own = [nullable(column, i) for i in range(3, 43)]
    assert found.to_pylist() == [as_spark(column.type, each) for each in own]


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("uint64", 2**64 - 1, Decimal(2**64 - 1)),
        ("uint8", 255, 255),
        ("int64", -(2**63), -(2**63)),
        ("decimal256(50, 2)", Decimal("-" + "9" * 48 + ".99"), "-" + "9" * 48 + ".99"),
        ("decimal256(38, 2)", Decimal("9" * 36 + ".99"), Decimal("9" * 36 + ".99")),
        ("time64[ns]", 86_399_999_999_999, 86_399_999_999_999),
        ("date32", dt.date(9999, 12, 31), dt.date(9999, 12, 31)),
        ("timestamp[s]", NEW_YEAR, NEW_YEAR),
        ("timestamp[ns, Asia/Tokyo]", 1_500_000, dt.datetime(1970, 1, 1, 0, 0, 0, 1500, dt.UTC)),
        ("duration[ms]", -1, dt.timedelta(milliseconds=-1)),
    ],
)
def test_extreme_values(text: str, value: Any, expected: Any) -> None:
    assert exchange(text, [value, None]) == [expected, None]


@pytest.mark.parametrize(
    ("value", "cut_off"), [(1999, 1), (-1, -1), (-1000, -1), (-1001, -2), (-(2**63), -9_223_372_036_854_776)]
)
def test_digits_below_a_microsecond(value: int, cut_off: int) -> None:
    assert exchange("duration[ns]", [value], truncates=True) == [dt.timedelta(microseconds=cut_off)]
    if value % 1000:
        with pytest.raises(InvalidInput, match=r"table/a\.b: column 'c' has times with digits below a microsecond"):
            exchange("duration[ns]", [value])


def test_a_time_that_spark_cannot_hold() -> None:
    with pytest.raises(InvalidInput, match="column 'c' has a value that Spark's type cannot hold"):
        exchange("timestamp[s]", [2**62])


def exchange(text: str, values: list[Any], *, truncates: bool = False) -> list[Any]:
    kind = parse_type(text)
    batch = pa.RecordBatch.from_arrays([pa.array(values, arrow_field(Column("c", kind)).type)], ["c"])
    target = pa.schema([pa.field("c", exchange_type(kind))])
    return list(exchanged(batch, target, "table/a.b", truncates=truncates).column(0).to_pylist())


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (spark.VarcharType(5), "string"),
        (spark.CharType(5), "string"),
        (spark.VariantType(), "json"),
        (spark.TimestampType(), "timestamp[us, UTC]"),
        (spark.MapType(spark.StringType(), spark.IntegerType(), False), "map<string, int32 not null>"),
    ],
)
def test_types_of_spark(kind: spark.DataType, text: str) -> None:
    assert column_of(spark.StructField("c", kind)).type == parse_type(text)


def test_a_noted_type_that_does_not_fit_any_more() -> None:
    field = spark.StructField("c", spark.StringType(), metadata={"deployer.type": "uint8"})
    assert column_of(field).type == parse_type("string")


def test_a_type_that_tables_cannot_have() -> None:
    kind = spark.StructType([spark.StructField("i", spark.YearMonthIntervalType())])
    with pytest.raises(InvalidInput, match=r"column 'c\.i' has Spark's type interval year to month"):
        column_of(spark.StructField("c", kind))
