"""The content of the report of a lake, read from the state store and the tables' manifests; no row is read."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from deployer.datasets.dataset import dataset_location, ids_by_name
from deployer.datasets.errors import lance_errors
from deployer.datasets.files.local_files import require_whole
from deployer.errors import DeployerError
from deployer.live.reader import live_table
from deployer.live.uncomputed import uncomputed_columns
from deployer.plan.assess.pending_backfills import PendingBackfill, pending_backfills
from deployer.platform.system.progress import OnProgress, counted, no_progress
from deployer.state import open_reader
from deployer.state.model.entities import TableEntry
from deployer.state.model.files.data_file import File
from deployer.state.reader import StateReader
from deployer.tables.inspect.describe import LeafInfo, TableDescription, describe
from deployer.tables.inspect.versions import TableVersion, history
from deployer.tables.layout.indexes.build import IndexInfo
from deployer.tables.open_table import ReadTable, read_entry


@dataclass(frozen=True, slots=True)
class Span:
    """The place of a leaf or a fragment in the table's key space, as shares of it from 0 to 1.

    The width of a leaf is its share of the rows, with a minimum. Inside a leaf keys are placed by their rank among the
    ends of all fragments, so that overlapping fragments also overlap in the picture.
    """

    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Fragment:
    """One data file group. `span` is None where its keys are unknown; `placed`: it lies in one leaf."""

    fragment_id: int
    rows: int
    bytes: int
    span: Span | None
    placed: bool
    sorted: bool


@dataclass(frozen=True, slots=True)
class IndexReport:
    """An index as `describe` has it, and the bytes of its files; None where Lance does not report them.

    Indexes that no spec can declare, which others made, have the kind that Lance calls them by and no parameters.
    """

    info: IndexInfo
    bytes: int | None


@dataclass(frozen=True, slots=True)
class TableReport:
    """A table as it is now. `leaves` has a span for each leaf of the description, in the order of keys."""

    description: TableDescription
    leaves: tuple[tuple[LeafInfo, Span], ...]
    fragments: tuple[Fragment, ...]
    indexes: tuple[IndexReport, ...]
    versions: tuple[TableVersion, ...]  #: the newest first
    pending: tuple[PendingBackfill, ...] = ()  #: its computed columns that a plan reports


@dataclass(frozen=True, slots=True)
class UnreadableTable:
    """A table whose dataset or state cannot be read, and why."""

    name: str
    problem: str


def lake_report(root: str, on_progress: OnProgress = no_progress) -> list[TableReport | UnreadableTable]:
    """Returns every active table by name. Raises NotFound when there is no lake at `root`."""
    with closing(open_reader(root)) as store:
        entries = [entry for entry in store.instance().tables.values() if entry.status == "active"]
        in_order = sorted(entries, key=lambda entry: entry.full_name)
        each_in_turn = counted(in_order, len(in_order), "reading tables", "tables", on_progress)
        return [_table(store, root, entry) for entry in each_in_turn]


def _table(store: StateReader, root: str, entry: TableEntry) -> TableReport | UnreadableTable:
    try:
        with lance_errors(dataset_location(root, entry)):
            table = read_entry(store, root, entry)
            require_whole(table.location, table.state.files.bytes)
            return table_report(table)
    except DeployerError as error:
        return UnreadableTable(entry.full_name, str(error))


def table_report(table: ReadTable) -> TableReport:
    """Returns one table that is open."""
    description = describe(table)
    files = sorted(table.state.files, key=lambda file: (file.min_key or b"", file.fragment_id))
    spans = leaf_spans([leaf.rows for leaf in description.leaves])
    place = _Places(table, files, spans)
    total, before, fragments = max(table.state.files.rows, 1), 0, []
    for file in files:
        span = place.of(file) if description.row_keys else Span(before / total, (before + file.rows) / total)
        before += file.rows
        fragments.append(
            Fragment(file.fragment_id, file.rows, file.bytes, span, file.partition is not None, file.sorted)
        )
    return TableReport(
        description,
        tuple(zip(description.leaves, spans, strict=True)),
        tuple(fragments),
        _indexes(table, description.indexes),
        tuple(history(table)),
        _pending(table) if description.computed else (),
    )


def _pending(table: ReadTable) -> tuple[PendingBackfill, ...]:
    live = live_table(table.entry, table.state)
    columns = live.spec.columns
    live = replace(live, uncomputed=uncomputed_columns(table.state, columns, partial(ids_by_name, table.dataset())))
    return tuple(pending_backfills(table.address, live, live.spec, ()))


def leaf_spans(rows: Sequence[int]) -> list[Span]:
    """Returns the leaves side by side from 0 to 1: a third of the width is divided equally, the rest by rows."""
    total = sum(rows)
    shares = [1 / len(rows) if not total else (1 / 3) / len(rows) + (2 / 3) * count / total for count in rows]
    spans, start = [], 0.0
    for share in shares:
        spans.append(Span(start, min(start + share, 1.0)))
        start += share
    return spans


class _Places:
    """Places encoded keys between 0 and 1."""

    def __init__(self, table: ReadTable, files: Sequence[File], spans: Sequence[Span]) -> None:
        self.spans = spans
        self.lowers = [leaf.lower for leaf in table.state.leaves()]
        keys = {key for file in files for key in (file.min_key, file.max_key) if key is not None}
        self.ranks: list[list[bytes]] = [[] for _ in self.lowers]
        for key in sorted(keys):
            self.ranks[self._leaf(key)].append(key)

    def of(self, file: File) -> Span | None:
        if file.min_key is None or file.max_key is None:
            return None
        return Span(self._place(file.min_key, 0), self._place(file.max_key, 1))

    def _leaf(self, key: bytes) -> int:
        at = bisect_left(self.lowers, key)
        return at if at < len(self.lowers) and self.lowers[at] == key else max(at - 1, 0)

    def _place(self, key: bytes, end: int) -> float:
        leaf = self._leaf(key)
        ranks, span = self.ranks[leaf], self.spans[leaf]
        share = (bisect_left(ranks, key) + end) / (len(ranks) + 1) if len(ranks) > 2 else float(end)
        return span.start + (span.end - span.start) * share


def _indexes(table: ReadTable, known: Sequence[IndexInfo]) -> tuple[IndexReport, ...]:
    described = {each.name: each for each in table.dataset().describe_indices() if not each.name.startswith("__lance_")}
    others = (_other(table, each) for name, each in described.items() if name not in {index.name for index in known})
    found = sorted((*known, *others), key=lambda index: index.name)
    return tuple(IndexReport(index, getattr(described.get(index.name), "total_size_bytes", None)) for index in found)


def _other(table: ReadTable, described: Any) -> IndexInfo:
    rows = table.state.files.rows
    indexed = min(int(described.num_rows_indexed), rows)
    kind, columns = str(described.index_type), tuple(described.field_names)
    return IndexInfo(described.name, kind, columns, {}, "ready", indexed, rows - indexed, 0)
