"""The values of a SQL expression for rows that are in memory, computed by DataFusion.

Expressions of a plan are tried in a process with limits (`platform.sql.process`); after that they are computed in this
process.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from deployer.errors import InvalidInput
from deployer.platform.sql.messages import in_plain_words
from deployer.platform.sql.one_expression import NotOneExpression, check_one_expression
from deployer.platform.sql.parsing import check_expression as check_syntax
from deployer.platform.sql.process import OverLimit, SqlFailed, compute
from deployer.tables.conversion.casts import lossless

NeverNull = Callable[[pa.RecordBatch], Any]  #: which rows may not become null, as booleans
Compute = Callable[[pa.RecordBatch, str], pa.ChunkedArray]
MOST_COUNTED = (
    1000  #: failing rows are counted exactly up to this number in a batch; above it the count is a lower bound
)


def values_of(rows: pa.RecordBatch, expression: str, target: pa.DataType) -> Any:
    """Returns one value of type `target` for each row, as an Array. An expression is one value: no statement, no
    aggregate.

    Raises ValueError with a readable message when the expression is wrong, fails for some row, or gives values that are
    not valid as `target`.
    """
    check_one_expression(
        expression, lenient=True
    )  # it may come from a lake, and an expression that is too deep ends the process
    array, lost, kind = _computed(rows, expression, target, _here)
    if lost is not None and lost.any():
        raise ValueError(f"some of its values of type {kind} are not valid as {target}")
    return array


def computed_here(rows: pa.RecordBatch, expression: str) -> Any:
    """Returns one value of any type for each row, as an Array. Raises ValueError when the expression fails for some
    row.

    The caller has checked that it is one expression, and tried it (`deployer.platform.sql.process.compute`).
    """
    try:
        found = _here(rows, expression)
    except Exception as failure:
        raise ValueError(reason_of(failure)) from failure
    if len(found) != rows.num_rows:
        raise ValueError("it does not give one value for each row")
    return pa.concat_arrays(found.chunks) if found.num_chunks else pa.nulls(0, found.type)


def _here(rows: pa.RecordBatch, expression: str) -> pa.ChunkedArray:
    from datafusion import SessionConfig, SessionContext

    # With one partition: several end in any order, and their values would be those of other rows.
    frame = SessionContext(SessionConfig().with_target_partitions(1)).from_arrow(rows)
    return frame.select(frame.parse_sql_expr(expression).alias("value")).to_arrow_table()["value"]


def _apart(rows: pa.RecordBatch, expression: str) -> pa.ChunkedArray:
    return compute(pa.Table.from_batches([rows]), expression)


def _computed(
    rows: pa.RecordBatch, expression: str, target: pa.DataType, compute: Compute
) -> tuple[Any, Any, pa.DataType]:
    """Returns the values as `target`, which of them (as numpy booleans, or None) are none, and the type that SQL gave
    them.

    Raises ValueError when the expression cannot be computed for some row.
    """
    if not rows.num_rows:
        return pa.nulls(0, target), None, target
    try:
        found = compute(rows, expression)
    except OverLimit:
        raise
    except Exception as failure:
        raise ValueError(reason_of(failure)) from failure
    values = found.combine_chunks() if found.num_chunks != 1 else found.chunk(0)
    if len(values) != rows.num_rows:
        raise ValueError("it does not give one value for each row")
    try:
        array, lost = lossless(values, target)
    except (pa.ArrowException, ValueError) as failure:
        raise ValueError(f"its values of type {values.type} are not valid as {target}: {failure}") from failure
    return array, lost, values.type


def failing_rows(rows: pa.RecordBatch, expression: str, target: pa.DataType, never_null: NeverNull | None) -> list[int]:
    """Returns the positions of rows for which the expression fails, or is null although `never_null` forbids it.

    Stops at about MOST_COUNTED. Raises OverLimit.
    """
    pending: list[tuple[int, pa.RecordBatch]] = [(0, rows)]
    failing: list[int] = []
    while pending and len(failing) < MOST_COUNTED:
        start, part = pending.pop()
        if not part.num_rows:
            continue
        try:
            values, lost, _ = _computed(part, expression, target, _apart)
        except ValueError:
            if part.num_rows == 1:
                failing.append(start)
                continue
            middle = part.num_rows // 2
            pending += [(start + middle, part.slice(middle)), (start, part.slice(0, middle))]
            continue
        if never_null is not None:
            became_null = pc.and_(never_null(part), pc.is_null(values)).to_numpy(zero_copy_only=False)
            lost = became_null if lost is None else lost | became_null
        if lost is not None:
            failing += (start + lost.nonzero()[0]).tolist()
    return failing


def check_expression(schema: pa.Schema, expression: str, where: object, renamed: Mapping[str, str]) -> None:
    """Raises InvalidInput when the expression cannot be computed from these columns at all, and OverLimit.

    `renamed` are the new names of columns in the same change, by the old ones.
    """
    try:
        check_syntax(expression)
        compute(pa.Table.from_batches([], schema), expression)
    except (NotOneExpression, SqlFailed) as failure:
        remedy = 'write one SQL value over the table\'s columns, such as CAST(delay AS INT) or "Delay" * 60'
        old = [name for name in renamed if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", expression, re.IGNORECASE)]
        if old:
            news = ", ".join(f"{name} is {renamed[name]} by then" for name in old)
            remedy = f"use the names that columns have after `renamed_from`: {news}"
        raise InvalidInput(
            f"the expression {expression!r} cannot be computed: {reason_of(failure)}", where=where, remedy=remedy
        ) from None


def named_columns(schema: pa.Schema, expression: str) -> list[str]:
    """Returns the columns that have to be read for the expression, at least one.

    Lance cannot read every column together with others, such as blobs in structs.
    """
    text = expression.lower()
    named = [name for name in schema.names if name.lower() in text or '"' in name]
    return named or [next((field.name for field in schema if not pa.types.is_nested(field.type)), schema.names[0])]


def reason_of(failure: BaseException) -> str:
    """Returns DataFusion's message of a failure, in one line."""
    first = in_plain_words(str(failure).splitlines()[0])
    text = re.sub(r"\bc[0-9a-f]{32}\.", "", first)  # the name that the rows have while computing
    for noise in ("DataFusion error: ", "Arrow error: ", "SQL error: ", "Schema error: "):
        text = text.replace(noise, "")
    return text.rstrip(".")
