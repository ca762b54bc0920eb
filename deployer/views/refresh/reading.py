"""Reads sources, their changes and the view's own rows, through the protocols of `deployer.views.query.model`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deployer.errors import DeployerError, NotFound
from deployer.tables.ingest.keys.sets import KeySet, blocks
from deployer.tables.open_table import OpenTable
from deployer.tables.read.conditions import check_condition, read_errors
from deployer.tables.read.scan_plan import Condition
from deployer.tables.read.table import Table as Reader
from deployer.tables.rows.candidates import fragments_for
from deployer.tables.rows.matching import ADDRESS, rows_at
from deployer.views.query.engine import ROWS_TABLE, Stream, run_sql, select_sql
from deployer.views.query.model import ROW_ID
from deployer.views.query.program import quoted
from deployer.views.refresh.net_changes import NetChanges, net_changes
from deployer.views.refresh.plan import SourceChange
from deployer.views.refresh.sources import Source

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from deployer.datasets.lance_types import LanceDataset

OnRows = Callable[[int], None]  #: a callback that gets the number of rows that were just read


@dataclass(frozen=True)
class Sources:
    """The sources of a view at the versions that the refreshed view reflects."""

    by_name: Mapping[str, Source]
    on_rows: OnRows = lambda _rows: None

    def read(self, table: str, columns: Sequence[str], where: str) -> Iterator[pa.RecordBatch]:
        """Yields rows with the columns, in the order of `columns`. `where` is used where Lance can evaluate it; other
        rows may be included."""
        source = self.by_name[table]
        condition, fragments = _chosen(source, where)
        names = [name for name in columns if name != ROW_ID]
        address = source.table.address
        dataset = source.dataset
        with read_errors(str(dataset.uri), address, dataset.schema, where or None):
            scanner = dataset.scanner(
                columns=names,
                filter=None if condition is None else condition.sql,
                fragments=fragments,
                with_row_id=ROW_ID in columns,
                blob_handling="all_binary",
            )
            for batch in scanner.to_batches():
                if batch.num_rows:
                    self.on_rows(batch.num_rows)
                    yield batch.select(list(columns))


def _chosen(source: Source, where: str) -> tuple[Condition | None, list[Any] | None]:
    """Returns the condition and the fragments that may have matching rows; None means no condition and all
    fragments. The condition is None where Lance cannot use it."""
    if not where:
        return None, None
    try:
        if source.is_newest:
            condition, fragments = Reader(source.table, source.dataset).candidates(where)
            fragments = fragments or list(source.dataset.get_fragments())[:1]
        else:
            check_condition(where, source.table.address, source.dataset.schema)
            condition, fragments = Condition.typed(where, source.dataset.schema), None
        source.dataset.scanner(columns=[], filter=condition.sql, with_row_id=True).explain_plan()
    except (DeployerError, OSError, ValueError):
        return None, None
    return condition, fragments


@dataclass
class Changes:
    """The net changes of the sources, each read once, on demand. Its methods raise NotFound for versions that were
    removed."""

    by_name: Mapping[str, SourceChange]
    on_rows: OnRows = lambda _rows: None
    _read: dict[str, NetChanges] = field(default_factory=dict)

    @property
    def tables(self) -> Sequence[str]:
        """The sources in which a row changed. A source is not among them if its commits changed no row in total."""
        return [name for name in self.by_name if not self._of(name).is_empty]

    def before(self, table: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yields rows that were deleted or updated, with their former values."""
        yield from self._of(table).removed.select(list(columns)).to_batches()

    def after(self, table: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yields rows that were inserted or updated, with their new values."""
        yield from self._of(table).added.select(list(columns)).to_batches()

    def _of(self, table: str) -> NetChanges:
        if table not in self._read:
            change = self.by_name.get(table)
            if change is None:
                raise NotFound(f"there are no changes of {table}", where="view", remedy="read those of its sources")
            found = net_changes(change.reading, change.commits)
            self.on_rows(found.removed.num_rows + found.added.num_rows)
            self._read[table] = found
        return self._read[table]


@dataclass
class ReadStoredRows:
    """The rows of a view at one version. `found` has the addresses of the rows of the last call of `rows`."""

    table: OpenTable
    dataset: LanceDataset
    identity: tuple[str, ...]
    found: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64))

    def rows(self, identities: pa.Table, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yields these columns of the rows that have these identities."""
        self.found = self.addresses(identities)
        place = (self.table.location, self.table.address)
        for batch in rows_at(place, self.dataset, self.found, columns):
            yield batch.select(list(columns))

    def addresses(self, identities: pa.Table) -> NDArray[np.uint64]:
        """Returns the ascending addresses of the rows that have these identities. Null is equal to null.

        Reads only the columns of the identity, and only the fragments whose ranges of row keys may contain one.
        """
        none = np.zeros(0, np.uint64)
        if not identities.num_rows:
            return none
        wanted = identities.select(list(self.identity))
        scanner = self.dataset.scanner(
            columns=list(self.identity), fragments=self._fragments(identities), with_row_address=True
        )
        return np.sort(np.concatenate([none, *addresses_of(wanted, scanner.to_batches())]))

    def _fragments(self, identities: pa.Table) -> list[Any] | None:
        """Returns the fragments that may contain one of the identities; None for all."""
        names = [name for name in self.table.row_keys if name in self.identity]
        if not names or names[0] != self.table.row_keys[0]:
            return None
        keys = identities.select(names)
        if any(keys[name].null_count for name in names):
            return None
        schema = pa.schema([self.table.schema.field(name) for name in names])
        return fragments_for(self.table, self.dataset, keys.cast(schema))


def addresses_of(wanted: pa.Table, batches: Iterator[pa.RecordBatch]) -> Iterator[NDArray[np.uint64]]:
    """Yields the addresses of the rows that equal a row of `wanted` in all columns of `wanted`. Null is equal to
    null."""
    names = wanted.schema.names
    if any(pa.types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType) for kind in wanted.schema.types):
        identities = Identities(wanted)
        for block in blocks(batches):
            yield np.asarray(block.column(ADDRESS))[identities.places_in([block.column(name) for name in names])]
        return
    first = next(batches, None)
    if first is None:
        return
    others = wanted.rename_columns([f"__of{place}" for place in range(len(names))])
    equal = " AND ".join(f'("__of{place}" IS NOT DISTINCT FROM {quoted(name)})' for place, name in enumerate(names))
    sql = select_sql([(ADDRESS, quoted(ADDRESS))], f'"__wanted" RIGHT SEMI JOIN {quoted(ROWS_TABLE)} ON {equal}', ())
    rows = Stream(first.schema, chain((first,), batches))
    for batch in run_sql(sql, {ROWS_TABLE: rows, "__wanted": others}).batches:
        yield np.asarray(batch.column(0))


class Identities:
    """A set of row identities for lookups. Null is equal to null."""

    def __init__(self, rows: pa.Table) -> None:
        self._fills = [_a_value(column) for column in rows.columns]
        self._keys = KeySet(self._plain(rows.columns))

    def places_in(self, columns: Sequence[Any]) -> NDArray[np.int64]:
        """Returns the positions of the rows in `columns` that have one of the identities."""
        return self._keys.matches(self._plain(columns))[1]

    def _plain(self, columns: Sequence[Any]) -> list[Any]:
        found = []
        for values, fill in zip(columns, self._fills, strict=True):
            array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
            found.append(pc.is_null(array).cast(pa.int8()))
            if fill is not None:
                found.append(pc.fill_null(array, fill.cast(array.type)))
        return found


def _a_value(column: Any) -> Any:
    """Returns any value of the column, to replace nulls; None where all values are null."""
    valid = column.drop_null()
    return valid[0] if len(valid) else None
