"""The computation of the values of a column: by SQL, or by a function. A definition can be pickled to workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from deployer.errors import InvalidInput
from deployer.functions.calls.caller import Caller
from deployer.functions.model import UDF, Computed
from deployer.functions.packages.needed import require_portable
from deployer.functions.packages.pickling import pickled, unpickled
from deployer.specs.types.arrow import arrow_field
from deployer.specs.types.types import Column
from deployer.tables.conversion.sql_values import values_of


class RowCaller(Protocol):
    """Computes values of batches of rows, in one thread of a worker."""

    def __call__(self, batch: pa.RecordBatch) -> Computed:
        """Returns a row for each row of the batch, with the columns of the definition in order."""

    def close(self) -> None:
        """Ends what was set up."""


class Definition(Protocol):
    """Computes `columns` from `inputs`. `identities` name this version of it, by column; `version` is what people
    see of that."""

    @property
    def columns(self) -> tuple[Column, ...]: ...

    @property
    def inputs(self) -> tuple[str, ...]: ...

    @property
    def identities(self) -> Mapping[str, str]: ...

    @property
    def version(self) -> str: ...

    @property
    def name(self) -> str:
        """The name of the definition in messages and records."""

    def caller(self) -> RowCaller:
        """Returns what computes values in one thread; the caller closes it."""

    def require_portable(self, engine: str) -> None:
        """Raises InvalidFunction where workers of the engine (`driver` or `spark`) cannot get the definition."""


@dataclass(frozen=True, slots=True)
class SqlDefinition:
    """Values of an SQL expression for one column."""

    sql: str
    column: Column
    inputs: tuple[str, ...]
    identity: str
    version: str

    @property
    def columns(self) -> tuple[Column, ...]:
        return (self.column,)

    @property
    def identities(self) -> Mapping[str, str]:
        return {self.column.name: self.identity}

    @property
    def name(self) -> str:
        return f"SQL `{self.sql}`"

    def caller(self) -> SqlCaller:
        return SqlCaller(self)

    def require_portable(self, engine: str) -> None: ...


@dataclass(frozen=True, slots=True)
class SqlCaller:
    """See `RowCaller`."""

    definition: SqlDefinition

    def __call__(self, batch: pa.RecordBatch) -> Computed:
        """Raises InvalidInput where the expression fails for some row, or a value does not fit the column."""
        column = self.definition.column
        field = arrow_field(column).with_nullable(True)
        try:
            values = values_of(batch, self.definition.sql, field.type)
        except ValueError as failure:
            raise InvalidInput(
                f"the expression of column {column.name} fails: {failure}",
                where=self.definition.name,
                remedy="correct the expression, or the values that it reads",
            ) from failure
        return Computed(pa.RecordBatch.from_arrays([values], schema=pa.schema([field])))

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class FunctionDefinition:
    """Values of a function. Each of `columns` has the output of the function at the same place in `outputs`.

    `declared` is the version that the column's definition names, in the place of the function's own; empty for none.
    """

    udf: UDF
    columns: tuple[Column, ...]
    outputs: tuple[int, ...]
    inputs: tuple[str, ...]
    ids: tuple[str, ...]  #: the identities, by column
    declared: str = ""

    def __reduce__(self) -> tuple[Any, ...]:
        """Carries code of the project by value, since workers of Spark do not find its modules."""
        return _carried, (pickled(self.udf)[0], self.columns, self.outputs, self.inputs, self.ids, self.declared)

    @property
    def identities(self) -> Mapping[str, str]:
        return dict(zip((column.name for column in self.columns), self.ids, strict=True))

    @property
    def version(self) -> str:
        return self.declared or self.udf.version

    @property
    def name(self) -> str:
        return f"function `{self.udf.name}`"

    def caller(self) -> FunctionCaller:
        return FunctionCaller(self)

    def require_portable(self, engine: str) -> None:
        require_portable(self.udf, engine)


def _carried(function: bytes, *others: Any) -> FunctionDefinition:
    return FunctionDefinition(unpickled(function), *others)


class FunctionCaller:
    """See `RowCaller`. Raises FunctionFailed where the function's error policy ends the work, but for the share of
    failed rows, which is that of all callers of a run."""

    def __init__(self, definition: FunctionDefinition) -> None:
        self._outputs = definition.outputs
        fields = [arrow_field(column).with_nullable(True).remove_metadata() for column in definition.columns]
        self._schema = pa.schema(fields)
        self._caller = Caller(definition.udf, definition.inputs, judges_share=False)

    def __call__(self, batch: pa.RecordBatch) -> Computed:
        made = self._caller(batch)
        columns = [made.values.column(place) for place in self._outputs]
        fitting = [
            each if each.type == field.type else each.cast(field.type)
            for each, field in zip(columns, self._schema, strict=True)
        ]
        return Computed(pa.RecordBatch.from_arrays(fitting, schema=self._schema), made.failures)

    def close(self) -> None:
        self._caller.close()


def refuse_unknown_inputs(inputs: Sequence[str], there: Sequence[str], name: str, where: str) -> None:
    """Raises InvalidInput for inputs that the table does not have."""
    for each in inputs:
        if each not in there:
            raise InvalidInput(
                f"{name} reads column {each}, which the table does not have",
                where=where,
                remedy=f"name columns of the table: {', '.join([*there][:10])}",
            )
