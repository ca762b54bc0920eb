"""Converts values of a source to the types of the table's columns."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from deployer.columns.fill.work import Target
from deployer.errors import Refused
from deployer.specs.types.arrow import arrow_field
from deployer.tables.conversion.casts import lossless


def values_schema(target: Target) -> pa.Schema:
    """Returns the schema of values. All columns are nullable, because deleted rows have null as a placeholder."""
    return pa.schema([arrow_field(column).with_nullable(True).remove_metadata() for column in target.columns])


def fitted(rows: pa.Table, target: Target, where: str) -> pa.Table:
    """Returns the target's columns of rows of a source, in the types of the target. `where` names the source.

    Raises Refused for values that the columns cannot have.
    """
    schema = values_schema(target)
    made = []
    for column, field in zip(target.columns, schema, strict=True):
        values = rows.column(column.name)
        if not values.type.equals(field.type):
            values, bad = lossless(values.combine_chunks(), field.type)
            if bad is not None and (number := int(pc.sum(bad).as_py() or 0)):
                raise _unfit(column.name, f"{number:,} values cannot become {field.type}", where)
        if not column.nullable and values.null_count:
            raise _unfit(column.name, f"{values.null_count:,} values are null, which the column must not be", where)
        made.append(values)
    return pa.table(made, schema=schema)


def _unfit(name: str, why: str, where: str) -> Refused:
    return Refused(f"column {name}: {why}", where=where, remedy="correct the source; no value was written")
