"""Calls a function for batches of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any

import pyarrow as pa

from deployer.errors import FunctionFailed, InvalidFunction
from deployer.functions.calls.arrays import call_arrays
from deployer.functions.calls.failures import FailureLog
from deployer.functions.calls.results import columns_of_values, output_schema, with_nulls
from deployer.functions.calls.rows import call_rows
from deployer.functions.model import UDF, Computed
from deployer.functions.values.reading import ColumnReader
from deployer.platform.system.clock import Clock
from deployer.platform.text.formatting import percentage

ROWS_AT_ONCE = 16_384  #: rows whose values are Python objects at the same time
_SYSTEM = Clock()


class Caller:
    """Calls a function in one thread of a worker; a class is set up once, by the first batch.

    `inputs` are the columns of the batches for the parameters, in order; for a function of batches, the columns that it
    gets. A context that closes it. Raises InvalidFunction where the inputs are not as many as the parameters.
    """

    def __init__(self, udf: UDF, inputs: Sequence[str], *, clock: Clock = _SYSTEM) -> None:
        if udf.form != "batch" and len(inputs) != len(udf.inputs):
            raise InvalidFunction(
                f"it has {len(udf.inputs)} parameters and gets {len(inputs)} columns",
                where=f"function `{udf.name}`",
                remedy="name a column per parameter",
            )
        self._udf, self._inputs, self._clock = udf, list(inputs), clock
        self._schema = output_schema(udf)
        self._readers = [ColumnReader(each.annotation) for each in udf.inputs]
        self._function: Callable[..., Any] | None = None
        self._rows = self._failed = 0

    def __call__(self, batch: pa.RecordBatch) -> Computed:
        """Returns a row for each row of the batch, null where the function failed and the policy skips the row.

        Raises FunctionFailed where the policy ends the work.
        """
        log = FailureLog(self._udf.on_error, self._udf.name)
        columns = self._computed(batch.select(self._inputs), log)
        failures = log.failures
        columns = with_nulls(columns, [each.row for each in failures], batch.num_rows)
        self._count(batch.num_rows, len(failures))
        return Computed(pa.RecordBatch.from_arrays(columns, schema=self._schema), failures)

    def close(self) -> None:
        """Ends what the function set up: its `teardown` is called where it has one. The caller is not used again."""
        function, self._function = self._function, None
        if function is not None and callable(teardown := getattr(function, "teardown", None)):
            teardown()

    def __enter__(self) -> Caller:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _computed(self, batch: pa.RecordBatch, log: FailureLog) -> list[pa.Array]:
        function = self._set_up(log)
        parts = []
        for first, part in _parts(batch, self._rows_of_a_call()):
            if self._udf.form == "scalar":
                read = [reader.read(column) for reader, column in zip(self._readers, part.columns, strict=True)]
                values = call_rows(function, read, part.num_rows, self._udf.on_error, log, first, self._clock)
                parts.append(columns_of_values(self._udf, values, log, first))
            else:
                parts.append(call_arrays(self._udf, self._array_call(function), part, log, first, self._clock))
        if not parts:
            return [pa.array([], field.type) for field in self._schema]
        return list(parts[0]) if len(parts) == 1 else [pa.concat_arrays(each) for each in zip(*parts, strict=True)]

    def _rows_of_a_call(self) -> int | None:
        if self._udf.form == "scalar":
            return min(self._udf.batch_size or ROWS_AT_ONCE, ROWS_AT_ONCE)
        return self._udf.batch_size

    def _array_call(self, function: Callable[..., Any]) -> Callable[[pa.RecordBatch], Any]:
        return function if self._udf.form == "batch" else lambda part: function(*part.columns)

    def _set_up(self, log: FailureLog) -> Callable[..., Any]:
        if self._function is None:
            try:
                self._function = self._udf.instance()
            except Exception as error:
                log.end(-1, error, 1)
        return self._function

    def _count(self, rows: int, failed: int) -> None:
        """Ends the work where the share of failed rows of all batches is above that of the policy."""
        self._rows, self._failed = self._rows + rows, self._failed + failed
        if self._udf.on_error.exceeded(self._failed, self._rows):
            raise FunctionFailed(
                f"{self._failed:,} of {self._rows:,} rows failed, more than {percentage(self._udf.on_error.max_share)}",
                where=f"function `{self._udf.name}`",
                remedy="read the errors of the job, and correct the function or the values",
            )


def _parts(batch: pa.RecordBatch, rows: int | None) -> Iterator[tuple[int, pa.RecordBatch]]:
    if rows is None or batch.num_rows <= rows:
        if batch.num_rows:
            yield 0, batch
        return
    for first in range(0, batch.num_rows, rows):
        yield first, batch.slice(first, rows)
