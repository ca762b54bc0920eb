"""The values of computed columns in rows that are loaded or changed.

A source does not contain these values. They are null until a backfill, or are computed immediately if the column is
declared `on_load: true`. In a changed row, columns that are computed from changed values become null, or are computed
again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from deployer.errors import InvalidInput
from deployer.specs.types.arrow import computed_of
from deployer.specs.types.computed import (
    COMPUTED_NOTE,
    Computed,
    ComputedBySql,
    ComputedByUdf,
    computation_order,
    describe_computed,
    readers_of,
)
from deployer.tables.conversion.casts import lossless
from deployer.tables.conversion.defaults import defaulted
from deployer.tables.conversion.nulls import relaxed
from deployer.tables.ingest.rows.load_functions import call_function

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Computing:
    """The way computed columns get values. `root` is the root below which the packages of functions are.

    `changed` has the columns whose values change in existing rows; None says that the rows are new.
    """

    root: str = ""
    changed: frozenset[str] | None = None


NEW_ROWS = Computing()
COMPUTED_REMEDY = "leave computed columns out; change what they are computed from, or their definitions"


@dataclass(frozen=True, slots=True)
class ComputedValues:
    """The values of a computed column. `failed` marks the rows without a value, because the definition fails for them
    (None: no row); `reason` says why."""

    column: str
    values: Any
    failed: NDArray[np.bool_] | None = None
    reason: str = ""


def computed_columns(table: pa.Schema) -> Mapping[str, Computed]:
    """Returns the definitions of the table's computed columns, by name, in the table's order."""
    return {field.name: computed for field in table if (computed := computed_of(field)) is not None}


def without_definitions(table: pa.Schema) -> pa.Schema:
    """Returns the schema without definitions, for rows whose computed columns keep their values."""

    def plain(field: pa.Field) -> pa.Field:
        kept = {name: value for name, value in (field.metadata or {}).items() if name != COMPUTED_NOTE}
        return field.with_metadata(kept) if field.metadata else field

    return pa.schema([plain(field) for field in table], table.metadata)


def without_computed(schema: pa.Schema) -> pa.Schema:
    """Returns the columns that are not computed."""
    return pa.schema([field for field in schema if computed_of(field) is None], schema.metadata)


def refuse_values(table: pa.Schema, names: Iterable[str], where: str) -> None:
    """Raises InvalidInput where one of the columns `names`, which are given values, is computed."""
    found = computed_columns(table)
    if given := [name for name in names if name in found]:
        raise InvalidInput(
            "; ".join(computed_problem(name, found[name]) for name in given), where=where, remedy=COMPUTED_REMEDY
        )


def computed_problem(name: str, computed: Computed) -> str:
    """Returns the message that a computed column cannot be given values."""
    return f"column {name!r} is computed by {describe_computed(computed)}, and is given no values"


def columns_to_compute(table: pa.Schema, computing: Computing) -> Collection[str]:
    """Returns the computed columns that get new values: all of them in new rows, and those that read a changed column
    in existing rows."""
    found = computed_columns(table)
    return found if computing.changed is None else readers_of(found, computing.changed)


def computed_values(
    table: pa.Schema, known: Mapping[str, Any], rows: int, computing: Computing
) -> Iterator[ComputedValues]:
    """Yields the values of the computed columns that get new values, each after the columns that it reads.

    `known` has the other columns of the rows, with the table's types. Raises the errors of `call_function`.
    """
    definitions = computed_columns(table)
    wanted = set(columns_to_compute(table, computing))
    columns = dict(known)
    calls: dict[tuple[str, ...], pa.RecordBatch] = {}
    for name in computation_order({each: computed.inputs for each, computed in definitions.items()}):
        if name not in wanted:
            continue
        field, computed = table.field(name), definitions[name]
        if computed.on_load and all(each in columns for each in computed.inputs):
            found = _computed(field, computed, columns, rows, computing.root, calls)
        else:
            found = ComputedValues(name, pa.nulls(rows, relaxed(field.type)))
        columns[name] = found.values
        yield found


def _computed(
    field: pa.Field,
    computed: Computed,
    columns: Mapping[str, Any],
    rows: int,
    root: str,
    calls: dict[tuple[str, ...], pa.RecordBatch],
) -> ComputedValues:
    target = relaxed(field.type)
    match computed:
        case ComputedBySql(sql=sql):
            read = {name: columns[name] for name in computed.inputs} or {"": pa.nulls(rows)}
            batch = pa.RecordBatch.from_pydict(read)
            values, failed = defaulted(batch, sql, target)
            return ComputedValues(field.name, values, failed, f"cannot be computed by {sql}")
        case ComputedByUdf(inputs=inputs, output=output):
            key = (computed.udf, computed.function, *inputs)
            if key not in calls:
                batch = pa.RecordBatch.from_pydict({name: columns[name] for name in inputs})
                calls[key] = call_function(root, field.name, computed, batch)
            made = calls[key]
            values = made.column(output if output else 0)
            if values.type.equals(target):
                return ComputedValues(field.name, values)
            array, failed = lossless(values, target)
            return ComputedValues(field.name, array, failed, f"is not {target}, as {computed.udf} makes it")
