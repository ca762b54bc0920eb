"""Gives a view another query: its rows are computed beside the old ones, and swapped in by one commit."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from deployer.datasets.commit_metadata import CommitMetadata
from deployer.datasets.dataset import create_dataset, open_dataset
from deployer.datasets.errors import storage_errors
from deployer.datasets.files.writer import write_stream
from deployer.datasets.lance_transactions import Append, commit_now
from deployer.datasets.recovery.unrecorded import missing_updates
from deployer.errors import CommitTimedOut
from deployer.platform.system.progress import OnProgress, Progress, no_progress
from deployer.runs.runner import RunRequest, as_run
from deployer.specs.model import TableSpec
from deployer.specs.serialized.specs import storage_from_json
from deployer.specs.types.arrow import arrow_schema
from deployer.state.log.updates import SetTableProperties, TableUpdate
from deployer.state.model.entities import RowCounts, TableState
from deployer.state.model.files import Files
from deployer.tables.open_table import OpenTable
from deployer.tables.partitions.key_ranges import Ranges
from deployer.tables.partitions.split_points import declared_partitions
from deployer.tables.rewrite.empty_dataset import swap_in_empty
from deployer.tables.rows.new_rows import write_rows
from deployer.views.definition import VIEW, Reflected, ViewDefinition
from deployer.views.query.model import ViewQuery
from deployer.views.refresh.commit import fitted
from deployer.views.refresh.create import NewView, refuse_cycle, spec_of
from deployer.views.refresh.queries import Queries, parsed, parsed_again, require_view
from deployer.views.refresh.reading import Sources
from deployer.views.refresh.record import KIND, sources_of
from deployer.views.refresh.refresh import SERVICE, done_before, require_view_online
from deployer.views.refresh.results import RefreshJobResult
from deployer.views.refresh.sources import Source, held_sources, require_online

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deployer.datasets.lance_types import LanceDataset

ATTEMPTS = 3  #: how often the rows are computed again because others commit to the view meanwhile


@dataclass(frozen=True)
class Redefinition:
    """Another query for a view, as a job. `row_keys` None: those that fit the query."""

    table: OpenTable
    definition: ViewDefinition
    job_id: str
    queries: Queries
    row_keys: tuple[str, ...] | None = None
    sort_keys: tuple[str, ...] = ()


def redefine_view(job: Redefinition, on_progress: OnProgress = no_progress) -> RefreshJobResult:
    """Gives the view the definition, the columns of its query and their rows, in one commit, as a run of REFRESH.

    Readers see the old view until then. The old dataset is kept as after a rewrite. With the id of a job that is done,
    nothing is done. Raises InvalidInput for a query that cannot be maintained or reads the view itself, and as
    `refresh` does; the view stays as it was then.
    """
    table = job.table.refreshed()
    require_view(table)
    if (done := done_before(table, job.job_id)) is not None:
        return done
    require_view_online(table)
    asked = RunRequest(cause=f"job {job.job_id}", job=job.job_id)

    def work(run_id: str, report_progress: OnProgress) -> RefreshJobResult:
        begun = time.monotonic()
        for _ in range(ATTEMPTS):
            now = replace(job, table=table.refreshed())
            if (result := _redefined(now, run_id, report_progress)) is not None:
                return replace(result, seconds=time.monotonic() - begun)
        raise CommitTimedOut(
            "others commit to the view faster than it can be computed", where=table.address, attempts=ATTEMPTS
        )

    return as_run(table.store, table.entry.table_id, SERVICE, asked, work, on_progress)


def _redefined(job: Redefinition, run_id: str, on_progress: OnProgress) -> RefreshJobResult | None:
    table, definition = job.table, job.definition
    store, root, name = table.store, table.root, table.entry.full_name
    found = parsed(job.queries, store, root, definition, table.address)
    refuse_cycle(store, root, job.queries, name, tuple(found.entries))
    with held_sources(store, root, found.entries, {}) as sources:
        for source in sources.values():
            require_online(source)
        query = parsed_again(job.queries, found, definition, sources, table.address)
        return _swapped(job, run_id, query, sources, on_progress)


def _swapped(
    job: Redefinition, run_id: str, query: ViewQuery, sources: Mapping[str, Source], on_progress: OnProgress
) -> RefreshJobResult | None:
    table, state = job.table, job.table.state
    storage = storage_from_json(state.properties.storage)
    view = NewView(table.entry.database, table.entry.name, job.definition, job.row_keys, job.sort_keys, storage=storage)
    spec = spec_of(view, query)
    tree = declared_partitions(spec)
    leaf = next(each.partition_id for each in tree if each.is_leaf)
    version = table.store.instance().version
    record = Reflected(job.definition.fingerprint, version, tuple(sources[each].version for each in query.tables))
    read = written = 0

    def count(rows: int) -> None:
        nonlocal read
        read += rows
        on_progress(Progress("reading the sources", read, None))

    def create(location: str) -> None:
        nonlocal written
        written = _create(location, job, spec, leaf, query, Sources(sources, count), record)

    def then(dataset: LanceDataset) -> Sequence[TableUpdate]:
        empty = TableState(
            table_id=state.table_id,
            properties=replace(state.properties, row_keys=spec.row_keys, sort_keys=spec.sort_keys),
            schema=dataset.schema.serialize().to_pybytes(),
            lance_version=1,
            partitions={each.partition_id: each for each in tree},
            files=Files(),
        )
        return missing_updates(dataset, empty)

    declared = {**state.properties.declared, VIEW: job.definition.to_json()}
    changed = SetTableProperties(
        {"row_keys": list(spec.row_keys), "sort_keys": list(spec.sort_keys), "declared": declared}
    )
    if swap_in_empty(table, create, [changed], tree, forgets_jobs=True, then=then) is None:
        return None
    after = table.refreshed().state
    return RefreshJobResult(
        job.job_id,
        table.entry.full_name,
        "full",
        "the view's query was changed",
        run_id,
        read,
        written,
        rows_deleted=state.files.rows,
        fragments=after.files.count,
        bytes=after.files.bytes,
        sources={name: str(each.position) for name, each in sources.items()},
        lance_version_before=state.lance_version,
        lance_version_after=after.lance_version,
    )


def _create(
    location: str,
    job: Redefinition,
    spec: TableSpec,
    leaf: str,
    query: ViewQuery,
    reader: Sources,
    record: Reflected,
) -> int:
    """Makes the new dataset with all rows; its one commit says what the view reflects. Returns the number of rows."""
    schema = arrow_schema(spec.columns)
    stable = spec.storage.stable_row_ids
    stable_row_ids = not spec.row_keys if stable is None else stable
    create_dataset(location, schema, spec.storage.data_storage_version, stable_row_ids=stable_row_ids)
    layout = replace(
        job.table.layout(),
        location=location,
        schema=schema.serialize().to_pybytes(),
        row_keys=spec.row_keys,
        sort_keys=spec.sort_keys,
    )
    rows = fitted(schema, job.queries.build(job.definition, query, reader), job.table.address)
    dataset = open_dataset(location)
    if layout.order:
        made = write_rows(layout, Ranges((), (leaf,)), dataset, rows)
    else:
        made = write_stream(layout, rows, leaf, dataset)
    number = sum(each.rows for each in made)
    counts, files = RowCounts(inserted=number), tuple(each.marked for each in made)
    info = CommitMetadata(job.job_id, KIND, number, files, sources_of(record), counts)
    with storage_errors(location):
        commit_now(location, dataset, Append([each.metadata for each in made]), [info])
    return number
