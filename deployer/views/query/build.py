"""All rows of a view, computed from its sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from deployer.functions.model import UDF
from deployer.views.query.engine import fitted, in_own_thread
from deployer.views.query.group_run import states_of_source, view_rows
from deployer.views.query.model import OnFailures, SourceReader, ViewQuery
from deployer.views.query.parsing.parse import source_condition
from deployer.views.query.program import RowProgram
from deployer.views.query.row_run import Runtime, run_rows


def build(
    query: ViewQuery,
    reader: SourceReader,
    functions: Mapping[str, UDF] | None = None,
    on_failures: OnFailures | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yields all rows of the view, with its stored schema. `functions` has the functions that the query calls, by name.

    Rows stream from the source; small tables, and the groups of a group view, are held in memory. Raises InvalidInput
    for rows for which an expression fails, and FunctionFailed for functions that fail.
    """
    return in_own_thread(_built(query, Runtime(reader, functions or {}, on_failures)))


def _built(query: ViewQuery, runtime: Runtime) -> Iterator[pa.RecordBatch]:
    program = query.program
    branches = program.branches if isinstance(program, RowProgram) else (program.rows,)
    for rows in branches:
        smalls = {each.scan.alias: runtime.small(rows, each) for each in rows.lookups}
        source = runtime.scanned(rows, source_condition(rows))
        if isinstance(program, RowProgram):
            for batch in run_rows(runtime, rows, rows.outputs, source, smalls).batches:
                yield fitted(batch, query.stored_schema)
        else:
            states = states_of_source(runtime, program, source, smalls)
            yield from view_rows(program, states, query.stored_schema, whole=True)
