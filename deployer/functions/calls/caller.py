"""Calls a function for batches of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import TypeVar

import pyarrow as pa

from deployer.errors import FunctionFailed, InvalidFunction
from deployer.functions.calls.arrays import call_arrays
from deployer.functions.calls.concurrent import AsyncRunner
from deployer.functions.calls.failures import FailureLog
from deployer.functions.calls.local import LocalRunner
from deployer.functions.calls.processes import ProcessRunner
from deployer.functions.calls.results import columns_of_values, joined, output_schema, with_nulls
from deployer.functions.calls.runner import ArrayRunner, RowRunner, Runner
from deployer.functions.error_policy import ErrorPolicy
from deployer.functions.model import UDF, Computed
from deployer.functions.values.plain import WrongValue
from deployer.functions.values.reading import ColumnReader
from deployer.platform.system.clock import Clock
from deployer.platform.text.formatting import percentage

ROWS_AT_ONCE = 16_384  #: rows whose values are Python objects at the same time; fewer where these are large
BYTES_AT_ONCE = 32 * 2**20  #: bytes of Arrow data whose values are Python objects at the same time
_SYSTEM = Clock()

R = TypeVar("R", bound=Runner)


class Caller:
    """Calls a function in one thread of a worker; a class is set up once, by the first batch.

    `inputs` are the columns of the batches for the parameters, in order; for a function of batches, the columns that it
    gets. Use it in a `with` block, which closes it. `judges_share`: it ends the work where too large a share of its
    rows failed; otherwise the process that has all rows checks the share. Raises InvalidFunction where the number of
    inputs differs from that of the parameters.
    """

    def __init__(self, udf: UDF, inputs: Sequence[str], *, clock: Clock = _SYSTEM, judges_share: bool = True) -> None:
        if udf.form != "batch" and len(inputs) != len(udf.inputs):
            raise InvalidFunction(
                f"it has {len(udf.inputs)} parameters and gets {len(inputs)} columns",
                where=f"function `{udf.name}`",
                remedy="name a column per parameter",
            )
        self._udf, self._inputs, self._clock = udf, list(inputs), clock
        self._schema = output_schema(udf)
        self._readers = [ColumnReader(each.annotation) for each in udf.inputs]
        self._rows_by: RowRunner | None = None
        self._arrays_by: ArrayRunner | None = None
        self._rows = self._failed = 0
        self._judges_share = judges_share

    def __call__(self, batch: pa.RecordBatch) -> Computed:
        """Returns a row for each row of the batch, null where the function failed and the policy skips the row.

        Raises FunctionFailed where the policy stops the work.
        """
        log = FailureLog(self._udf.on_error, self._udf.name)
        columns = self._computed(batch.select(self._inputs), log)
        failures = log.failures
        columns = with_nulls(columns, [each.row for each in failures], batch.num_rows)
        self._count(batch.num_rows, len(failures))
        return Computed(pa.RecordBatch.from_arrays(columns, schema=self._schema), failures)

    def close(self) -> None:
        """Calls the function's `teardown`, if it has one.

        The next batch sets the function up again. Raises FunctionFailed where `teardown` fails.
        """
        runner = self._rows_by or self._arrays_by
        self._rows_by = self._arrays_by = None
        if runner is None:
            return
        try:
            runner.close()
        except Exception as error:
            FailureLog(self._udf.on_error, self._udf.name).end(-1, error, 1)

    def __enter__(self) -> Caller:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _computed(self, batch: pa.RecordBatch, log: FailureLog) -> list[pa.Array]:
        made = self._of_values if self._udf.form == "scalar" else self._of_arrays
        parts = [made(part, log, first) for first, part in _parts(batch, self._rows_of_a_call(batch))]
        if not parts:
            return [pa.array([], field.type) for field in self._schema]
        try:
            return joined(parts)
        except WrongValue as error:
            log.end(-1, error, 1)

    def _rows_of_a_call(self, batch: pa.RecordBatch) -> int | None:
        if self._udf.form != "scalar":
            return self._udf.batch_size
        of_a_size: int = BYTES_AT_ONCE * batch.num_rows // max(1, int(batch.nbytes))
        return max(1, min(self._udf.batch_size or ROWS_AT_ONCE, ROWS_AT_ONCE, of_a_size))

    def _of_values(self, part: pa.RecordBatch, log: FailureLog, first: int) -> list[pa.Array]:
        if self._rows_by is None:
            self._rows_by = self._set_up(_row_runner, log)
        read = [reader.read(column) for reader, column in zip(self._readers, part.columns, strict=True)]
        values = self._rows_by.call_rows(read, part.num_rows, log, first)
        return columns_of_values(self._udf, values, log, first)

    def _of_arrays(self, part: pa.RecordBatch, log: FailureLog, first: int) -> list[pa.Array]:
        if self._arrays_by is None:
            self._arrays_by = self._set_up(_array_runner, log)
        return call_arrays(self._udf, self._arrays_by.call_arrays, part, log, first, self._clock)

    def _set_up(self, kind: Callable[[UDF, Clock], R], log: FailureLog) -> R:
        try:
            return kind(self._udf, self._clock)
        except Exception as error:
            log.end(-1, error, 1)

    def _count(self, rows: int, failed: int) -> None:
        """Raises FunctionFailed where the share of failed rows of all batches is above the limit of the policy."""
        self._rows, self._failed = self._rows + rows, self._failed + failed
        if self._judges_share and self._udf.on_error.exceeded(self._failed, self._rows):
            raise too_many_failed(f"function `{self._udf.name}`", self._udf.on_error, self._failed, self._rows)


def too_many_failed(name: str, policy: ErrorPolicy, failed: int, rows: int, then: str = "") -> FunctionFailed:
    """Returns the error of a function whose share of failed rows is above the policy's limit.

    The function is named as in messages. `then` is the remedy after the function or the values are corrected.
    """
    return FunctionFailed(
        f"{failed:,} of {rows:,} rows failed, more than {percentage(policy.max_share)}",
        where=name,
        remedy="read the errors of the job, and correct the function or the values" + (f"; {then}" if then else ""),
    )


def _row_runner(udf: UDF, clock: Clock) -> RowRunner:
    if udf.is_async:
        return AsyncRunner(udf, clock)
    return LocalRunner(udf, clock) if udf.timeout is None else ProcessRunner(udf, clock)


def _array_runner(udf: UDF, clock: Clock) -> ArrayRunner:
    return LocalRunner(udf, clock) if udf.timeout is None else ProcessRunner(udf, clock)


def _parts(batch: pa.RecordBatch, rows: int | None) -> Iterator[tuple[int, pa.RecordBatch]]:
    if rows is None or batch.num_rows <= rows:
        if batch.num_rows:
            yield 0, batch
        return
    for first in range(0, batch.num_rows, rows):
        yield first, batch.slice(first, rows)
