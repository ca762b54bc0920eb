"""The definition that computes the values of a column: by SQL, or by a function. Definitions are pickled for
workers."""

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
        """Returns a row for each row of the batch, with the definition's columns in their order."""

    def close(self) -> None:
        """Releases the resources that were set up for the calls."""


class Definition(Protocol):
    """A definition that computes `columns` from `inputs`. `identities` identify its version for each column; `version`
    is the version that people see."""

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
        """Returns an object that computes values in one thread. The user of the object must close it."""

    def require_portable(self, engine: str) -> None:
        """Raises InvalidFunction where workers of the engine (`driver` or `spark`) cannot get the definition."""


@dataclass(frozen=True, slots=True)
class SqlDefinition:
    """The definition of one column by an SQL expression."""

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
    """The evaluation of an SQL expression (see `RowCaller`)."""

    definition: SqlDefinition

    def __call__(self, batch: pa.RecordBatch) -> Computed:
        """Returns the column's values. Raises InvalidInput where the expression fails for a row, or a value does not
        fit the column."""
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
    """The definition of columns by a function. Each of `columns` has the output of the function whose number is at the
    same position in `outputs`.

    `declared` is the version that the column's definition names instead of the function's own; empty for none.
    """

    udf: UDF
    columns: tuple[Column, ...]
    outputs: tuple[int, ...]
    inputs: tuple[str, ...]
    ids: tuple[str, ...]  #: the identities, by column
    declared: str = ""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles code of the project by value, because Spark workers cannot import the project's modules."""
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
    """The calls of a function (see `RowCaller`).

    A call raises FunctionFailed where the function's error policy ends the work. It does not check the share of failed
    rows, which concerns all callers of a run (see `ErrorShare`).
    """

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
    """Raises InvalidInput for inputs that are not among the table's columns `there`. `name` names the definition."""
    for each in inputs:
        if each not in there:
            raise InvalidInput(
                f"{name} reads column {each}, which the table does not have",
                where=where,
                remedy=f"name columns of the table: {', '.join([*there][:10])}",
            )
