"""A run of the service BACKFILL: computes columns one after the other, inputs of other columns first."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from deployer.columns.backfill.backfill import BackfillJob, compute, require_online
from deployer.columns.backfill.request import BackfillRequest
from deployer.columns.backfill.resolve import definition_of, finder
from deployer.columns.backfill.selection import Selection
from deployer.columns.fill.executor import Executor, InThreads
from deployer.columns.fill.spark_tasks import OnSpark
from deployer.datasets.dataset import field_ids
from deployer.errors import InvalidInput
from deployer.platform.isolation.trusted_functions import TrustedFunctions
from deployer.platform.text.formatting import count
from deployer.services.definition import Work, options_of
from deployer.services.kinds.backfill.options import BackfillOptions
from deployer.services.kinds.backfill.results import BackfilledColumn, BackfillResult
from deployer.specs.types.arrow import columns_of
from deployer.specs.types.computed import Computed, computation_order
from deployer.state.model.files.computed_by import has_others, has_outdated, has_unknown, is_computed
from deployer.tables.open_table import OpenTable, ReadTable, open_entry

if TYPE_CHECKING:
    from deployer.columns.backfill.definition import Definition

SPARK_ROWS = 2_000_000  #: least rows for Spark, unless an engine is given


def backfill_columns(work: Work[BackfillOptions]) -> BackfillResult:
    """Computes the missing values of each column, as one run.

    Each column is a job of its own, so the next run does not repeat the work of an interrupted one. Raises the errors
    of `backfill`; committed values stay.
    """
    begun = time.monotonic()
    table, options = work.table, work.options
    require_online(table)
    names = chosen_columns(table, options.columns)
    find = finder(TrustedFunctions.allowed())
    done: list[BackfilledColumn] = []
    for name in names:
        table = open_entry(table.store, table.root, table.store.instance().tables[table.entry.table_id])
        request = BackfillRequest(
            name,
            concurrency=options.concurrency,
            commit_granularity=options.commit_granularity,
            keeps_others=options.on_change == "keep",
        )
        definition = definition_of(table, name, None, find)
        rows = _rows_to_do(table, request, definition)
        if not rows:
            continue
        on_spark = work.engine == "spark" or (work.engine == "auto" and rows >= SPARK_ROWS)
        definition.require_portable("spark" if on_spark else "driver")
        executor: Executor = OnSpark(work.session) if on_spark else InThreads(options.concurrency)
        job_id = _job_id(table, name, definition)
        job = BackfillJob(table, request, job_id, executor=executor)
        found = compute(job, definition, Selection(request, definition.identities), work.run_id, work.on_progress)
        done.append(
            BackfilledColumn(
                name,
                definition.version,
                job_id,
                found.rows,
                found.stats.fragments,
                found.stats.bytes,
                found.errors,
                round(found.seconds, 3),
            )
        )
    after = table.store.table(table.entry.table_id).lance_version
    result = BackfillResult(
        table.entry.full_name,
        work.run_id,
        "SUCCEEDED",
        "",
        tuple(done),
        round(time.monotonic() - begun, 3),
        work.table.state.lance_version,
        after,
    )
    if done:
        return result
    return replace(result, status="SKIPPED", why="all rows are computed" if names else "no column is computed")


def computed_columns(table: ReadTable) -> Mapping[str, Computed]:
    """Returns the definitions of the table's computed columns by name, each after its inputs."""
    found = {column.name: column.computed for column in columns_of(table.schema) if column.computed is not None}
    order = computation_order({name: [each for each in one.inputs if each in found] for name, one in found.items()})
    return {name: found[name] for name in order}


def chosen_columns(table: ReadTable, names: Sequence[str]) -> list[str]:
    """Returns the columns to compute, each after its inputs. Raises InvalidInput for columns that are not computed."""
    computed = computed_columns(table)
    for name in names:
        if name not in computed:
            raise InvalidInput(
                f"column {name}, which BACKFILL names, is not a computed column of the table",
                where=table.address,
                remedy=f"name computed columns: {', '.join(computed) or 'there is none'}",
            )
    return [name for name in computed if not names or name in names]


def forecast(table: ReadTable) -> str:
    """Returns what the next run would compute. The manifest of the dataset is opened, and no data file."""
    options = BackfillOptions.of(options_of(table.state, "BACKFILL"))
    computed = computed_columns(table)
    parts = []
    dataset = table.dataset()
    for name in chosen_columns(table, options.columns):
        identity, field = computed[name].identity, field_ids(dataset, [name])[0]
        files = [file for file in table.state.files if not is_computed(file.computed, field, identity)]
        if options.on_change == "keep":
            files = [
                file
                for file in files
                if not has_others(file.computed, field, identity)
                or has_unknown(file.computed, field)
                or has_outdated(file.computed, field)
            ]
        if files:
            rows = sum(file.rows for file in files)
            parts.append(f"computes {name} of up to {count(rows, 'row')} in {count(len(files), 'file')}")
    return "; ".join(parts) or "nothing: all rows are computed"


def _rows_to_do(table: OpenTable, request: BackfillRequest, definition: Definition) -> int:
    found = Selection(request, definition.identities).recorded(table.state, table.dataset())
    return sum(file.rows for file in found)


def _job_id(table: OpenTable, name: str, definition: Definition) -> str:
    """Returns the id of the job that computes the column: that of the previous run if it was interrupted."""
    identity = definition.identities[name]
    if len(definition.identities) > 1:  # an added or removed column makes it another job
        every = json.dumps(sorted(definition.identities.items()))
        identity = f"{hashlib.sha256(every.encode()).hexdigest()[:16]}-{identity}"
    base = f"service-{definition.columns[0].name.encode().hex()[:40]}-{identity}"[:90]
    number = 1
    while f"{base}-{number}" in table.state.jobs:
        number += 1
    return f"{base}-{number}"
