"""Views that specs declare: creation with the columns that refreshes need, and the rebuild for another query.

A rebuild writes a second dataset, which replaces the view's dataset in one commit. Readers see the former rows until
that commit. The former dataset is kept for the view's `storage.keep_replaced_for`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from deployer.datasets.commit_metadata import CommitMetadata
from deployer.datasets.dataset import open_dataset
from deployer.datasets.errors import storage_errors
from deployer.datasets.files.writer import WrittenFragment, write_stream
from deployer.datasets.lance_transactions import Append, commit_now
from deployer.datasets.recovery.unrecorded import missing_updates
from deployer.errors import Conflict, InvalidInput
from deployer.platform.system.failpoints import reached
from deployer.platform.system.progress import OnProgress, Progress, no_progress
from deployer.specs.model import TableSpec
from deployer.specs.types.arrow import columns_of
from deployer.specs.types.types import format_type
from deployer.specs.types.view import view_to_stored
from deployer.state.log.updates import FilesAdded, SetTableProperties, TableUpdate
from deployer.state.model.declared_properties import VIEW
from deployer.state.model.entities import Partition, TableState
from deployer.state.model.keys import decode_key
from deployer.state.store import StateStore
from deployer.tables.evolution.rewrite.empty_dataset import swap_in
from deployer.tables.evolution.rewrite.target import Target, create_empty, target_without_rows
from deployer.tables.layout.partitions.key_ranges import Ranges
from deployer.tables.layout.partitions.split_points import declared_partitions
from deployer.tables.open_table import OpenTable, open_entry
from deployer.tables.rows.new_rows import write_rows
from deployer.views.definition import ReflectedInputs, ViewDefinition
from deployer.views.query.model import ViewQuery
from deployer.views.refresh.commit import fitted
from deployer.views.refresh.queries import Queries, parsed, parsed_again
from deployer.views.refresh.reading import Sources
from deployer.views.refresh.record import KIND, sources_of
from deployer.views.refresh.sources import held_sources

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset

ATTEMPTS = 5  #: how often a view is built before it fails because others keep changing the view meanwhile


def with_stored_columns(store: StateStore, root: str, spec: TableSpec, queries: Queries) -> TableSpec:
    """Returns the view with the hidden columns that refreshes need, in addition to the columns of its query.

    Raises InvalidInput for a query that cannot be maintained, and for one whose columns differ from the declared ones.
    """
    found = parsed(queries, store, root, definition_of(spec), spec.address)
    return _stored(spec, found.query)


def rebuild_view(
    store: StateStore,
    root: str,
    table_id: str,
    spec: TableSpec,
    queries: Queries,
    on_progress: OnProgress = no_progress,
) -> None:
    """Gives the view the query, columns, keys, split points and storage of `spec`, and the rows of that query.

    A view without rows stays empty: its next refresh computes the rows. If an error is raised, the view is unchanged.
    Raises the errors of `with_stored_columns`, Refused for sources that cannot be read, and Conflict where others keep
    changing the view.
    """
    definition = definition_of(spec)
    found = parsed(queries, store, root, definition, spec.address)
    for _ in range(ATTEMPTS):
        table = open_entry(store, root, store.instance().tables[table_id])
        with held_sources(store, root, found.entries, {}) as sources:
            query = parsed_again(queries, found, definition, sources, spec.address)
            target = target_without_rows(_stored(spec, query))
            version = store.instance().version
            record = ReflectedInputs(
                definition.fingerprint, version, tuple(sources[name].version for name in query.tables)
            )
            read = 0

            def count(rows: int) -> None:
                nonlocal read
                read += rows
                on_progress(Progress("reading the sources", read, None))

            reader = Sources(sources, count)
            build = _Build(table, spec, target, query, queries, reader, record)
            # The view gets different rows. Therefore change feeds report all former rows as deleted.
            if swap_in(table, build.create, [build.properties()], build.tree, forgets_jobs=True) is not None:
                return
    raise Conflict("the view kept changing while it was built", where=spec.address, remedy="run `deployer up` again")


def definition_of(spec: TableSpec) -> ViewDefinition:
    """Returns the definition of a declared view, as the state stores it."""
    if spec.view is None:
        raise InvalidInput("it is a table and not a view", where=spec.address, remedy="declare a query")
    return ViewDefinition.of_json(view_to_stored(spec.view), spec.address)


def _stored(spec: TableSpec, query: ViewQuery) -> TableSpec:
    planned = {column.name: format_type(column.type) for column in columns_of(query.schema)}
    for column in spec.columns:
        if planned.get(column.name) != format_type(column.type):
            raise InvalidInput(
                f"column {column.name} is declared as {format_type(column.type)}, and the query gives "
                f"{planned.get(column.name, 'no such column')}",
                where=spec.address,
                remedy="preview again; if it stays so, CAST the column in the query",
            )
    hidden = columns_of(pa.schema([query.stored_schema.field(name) for name in query.hidden]))
    return replace(spec, columns=(*spec.columns, *hidden))


class _Build:
    """The build of a view's new dataset."""

    def __init__(
        self,
        table: OpenTable,
        spec: TableSpec,
        target: Target,
        query: ViewQuery,
        queries: Queries,
        reader: Sources,
        record: ReflectedInputs,
    ) -> None:
        self._table, self._spec, self._target = table, spec, target
        self._query, self._queries, self._reader, self._record = query, queries, reader, record
        self.tree: Sequence[Partition] = declared_partitions(spec)

    def properties(self) -> SetTableProperties:
        """Returns the properties of the view that change with its rows."""
        changed = self._target.properties(self._table.state)
        declared = changed["declared"]
        view = self._spec.view
        assert isinstance(declared, dict)  # noqa: S101
        assert view is not None  # noqa: S101
        return SetTableProperties({**changed, "declared": {**declared, VIEW: view_to_stored(view)}})

    def create(self, location: str) -> tuple[TableUpdate, ...]:
        """Writes the dataset, and returns the updates that record its rows in the log."""
        create_empty(location, self._table, self._target, self._target.schema)
        if not self._table.state.files.rows:
            return ()
        dataset = open_dataset(location)
        written = self._written(location, dataset)
        reached("views.rebuild.written")
        job_id = f"rebuild-{self._table.entry.table_id[:8]}-{location.rpartition('-')[2].partition('.')[0]}"
        rows = sum(each.rows for each in written)
        marks = tuple(each.marked for each in written)
        info = CommitMetadata(job_id, KIND, rows, marks, sources_of(self._record))
        with storage_errors(location):
            commit_now(location, dataset, Append([each.metadata for each in written]), [info])
        reached("views.rebuild.committed")
        return self._recorded(location, job_id, rows)

    def _written(self, location: str, dataset: LanceDataset) -> Sequence[WrittenFragment]:
        layout = self._target.layout(location)
        address = self._spec.address
        batches = fitted(
            layout.arrow_schema, self._queries.build(definition_of(self._spec), self._query, self._reader), address
        )
        leaves = sorted((each for each in self.tree if each.is_leaf), key=lambda leaf: leaf.lower)
        if not layout.order:
            return write_stream(layout, batches, leaves[0].partition_id if leaves else None, dataset)
        points = tuple(decode_key(self._target.kinds, leaf.lower) for leaf in leaves[1:])
        return write_rows(layout, Ranges(points, tuple(leaf.partition_id for leaf in leaves)), dataset, batches)

    def _recorded(self, location: str, job_id: str, rows: int) -> tuple[TableUpdate, ...]:
        new = open_dataset(location)
        properties = replace(
            self._table.state.properties, row_keys=self._target.row_keys, sort_keys=self._target.sort_keys
        )
        empty = TableState(
            table_id=self._table.state.table_id,
            properties=properties,
            schema=new.schema.serialize().to_pybytes(),
            lance_version=1,
            partitions={each.partition_id: each for each in self.tree},
        )
        added = [update for update in missing_updates(new, empty) if isinstance(update, FilesAdded)]
        files = tuple(file for update in added for file in update.files)
        return (FilesAdded(files, new.version, job_id, rows, KIND, sources_of(self._record)),)
