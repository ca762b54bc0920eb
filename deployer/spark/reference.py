"""Writes docs/types-in-spark.md from the mapping: `python -m deployer.spark.reference > docs/types-in-spark.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from pyspark.sql import types as spark

from deployer.spark.type_mapping import column_of, spark_type
from deployer.specs.types.parser import parse_type
from deployer.specs.types.table import TYPE_ROWS
from deployer.specs.types.types import format_type

INTRODUCTION = """# Types in Spark

<!-- Written by `python -m deployer.spark.reference > docs/types-in-spark.md` from the code. -->

What a column of a table is in Spark, for [reading](spark.md). It is the same on all releases of Spark from 4.0. The
third column of the table below is the type that Spark's type alone becomes; where that is another one than the
column's, the column's metadata in Spark has the type of the table under `deployer.type`, and its description under
`comment`, by which `deployer.spark.type_mapping.column_of` finds the column again.
"""

NOTES = """
Nulls, `not null` and names are kept at every level.

- **Times.** Spark has microseconds. A time with digits below is an error of the query unless the option
  `nanoseconds` is `truncate`; seconds and milliseconds that microseconds cannot reach (the year 294247) are errors,
  too. An instant is the same instant, whatever zone its column shows it in: Spark shows it in the session's zone
  (`spark.sql.session.timeZone`).
- **Times of day** are whole numbers in the column's unit since midnight, since Spark's own type is new in 4.1 and
  off by default.
- **Decimals** of more than 38 digits are exact text.
- **JSON** is its text: `from_json(c, …)`, or `parse_json(c)` for Spark's `variant`.
- **NaN** and both zeros are kept. In comparisons Spark holds NaN equal to itself and above all numbers, and so
  filters on such columns are Spark's alone.
- **Blobs** are read whole; leave them out by `columns` where they are not needed.
"""

_BACK: tuple[spark.DataType, ...] = (
    spark.TimestampType(),
    spark.TimestampNTZType(),
    spark.DayTimeIntervalType(),
    spark.VarcharType(10),
    spark.VariantType(),
    spark.StringType(),
    spark.ArrayType(spark.IntegerType()),
)


def reference() -> str:
    """Returns the Markdown of the page."""
    return "\n".join([INTRODUCTION, *_types(), NOTES, *_others()]).rstrip() + "\n"


def _types() -> Iterator[str]:
    yield from ("| type of a table | in Spark | alone becomes | note |", "|---|---|---|---|")
    for row in TYPE_ROWS:
        kind = parse_type(row.text)
        found = spark_type(kind)
        back = column_of(spark.StructField("c", found)).type
        same = "the same" if back == kind else f"`{format_type(back)}`"
        yield f"| `{row.text}` | `{_name(found)}` | {same} | {_NOTES.get(row.text, '')} |"


_NOTES = {
    "decimal256(50, 2)": "`decimal` up to 38 digits",
    "time32[ms]": "in the column's unit",
    "time64[us]": "in the column's unit",
    "uuid": "with hyphens",
    "json": "its text",
    "blob": "read whole",
}


def _others() -> Iterator[str]:
    yield from ("## Columns of Spark", "", "| in Spark | in a table |", "|---|---|")
    for kind in _BACK:
        yield f"| `{_name(kind)}` | `{format_type(column_of(spark.StructField('c', kind)).type)}` |"
    yield "| `time` (from 4.1) | `time64[us]` |"
    yield "| `interval year to month`, `geometry`, `geography` | refused: cast it |"


def _name(kind: spark.DataType) -> str:
    return kind.simpleString()


if __name__ == "__main__":
    sys.stdout.write(reference())
