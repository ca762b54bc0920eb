"""Builds, drops and updates the indexes of a table. Every step can be repeated after a crash.

An index is recorded before Lance builds it, and is ready when the dataset has it. An index on vectors waits until there
are enough rows for training: on an empty table, Lance would accept the declaration, forget the number of partitions,
and train the index with one partition.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from deployer.datasets.dataset import dataset_location, open_dataset
from deployer.datasets.errors import message_of
from deployer.datasets.indexes.read import (
    ObservedIndex,
    RememberedIndex,
    observed_indexes,
    remembered_indexes,
    with_indexes,
)
from deployer.datasets.lance_transactions import reason_of
from deployer.datasets.recovery.rollforward import refresh
from deployer.errors import CommitTimedOut, Conflict, DeployerError
from deployer.platform.system.failpoints import reached
from deployer.platform.system.progress import OnProgress, no_progress
from deployer.platform.system.retry import Backoff
from deployer.specs.schema.index_kinds import NUM_BITS, VECTOR_KINDS
from deployer.specs.types.column_names import quoted
from deployer.state.log.requirements import PropertiesAre
from deployer.state.log.updates import SetTableProperties
from deployer.tables.layout.indexes.parts import IN_ONE_PART, BuildPlan, PlanBuild, in_one_part, write_index

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset
    from deployer.specs.model import IndexSpec
    from deployer.state.model.entities import TableEntry, TableState
    from deployer.state.store import StateStore
    from deployer.tables.open_table import ReadTable

T = TypeVar("T")

# Without this setting, Lance warns on stderr that it will leave centroids out of statistics. No code here reads them.
os.environ.setdefault("LANCE_INCLUDE_VECTOR_CENTROIDS", "false")

ATTEMPTS = 20  #: attempts to commit an index while others commit first
_BACKOFF = Backoff(first=0.05, longest=5.0)


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """An index of a table: its declaration, its status, and the number of rows that it contains or lacks."""

    name: str
    kind: str
    columns: tuple[str, ...]
    parameters: dict[str, Any]
    status: str
    indexed_rows: int
    unindexed_rows: int
    waits_for_rows: int  #: the number of rows that a pending index needs; 0 for other indexes


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """The result of an update of indexes: newly built indexes, updated indexes, and failures."""

    built: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    failure: str = ""


def build_index(
    store: StateStore,
    root: str,
    table_id: str,
    index: IndexSpec,
    on_progress: OnProgress = no_progress,
    *,
    replaced: str = "",
    plan: BuildPlan = IN_ONE_PART,
) -> bool:
    """Builds the index. The commit also replaces an index of the same name, and the one named `replaced`.

    Returns False where the index stays pending for lack of rows; the index to replace then stays. Raises Conflict where
    others keep committing, DeployerError with Lance's message, and the errors of a build on another machine.
    """
    entry = store.instance().tables[table_id]
    state = refresh(store, root, table_id)
    dataset = open_dataset(dataset_location(root, entry))
    existing = observed_indexes(dataset).get(index.name)
    known = remembered_indexes(state.properties).get(index.name)
    before = (known.index if known.status == "ready" else known.before) if known and existing else None
    segments = existing.segments if existing else frozenset[str]()
    if not has_rows_for(dataset, index):
        remember(store, table_id, RememberedIndex(index, "pending", state.dataset, before, segments))
        return False
    if plan.elsewhere is not None:
        built = plan.elsewhere(store, root, table_id, index, replaced, on_progress)
        refresh(store, root, table_id)
        return built
    remember(store, table_id, RememberedIndex(index, "building", state.dataset, before, segments))
    reached("tables.index.begun")
    location = dataset_location(root, entry)
    committed(entry, root, lambda dataset: write_index(location, dataset, index, replaced, plan, on_progress))
    reached("tables.index.built")
    state = refresh(store, root, table_id)
    if replaced != index.name and replaced in remembered_indexes(state.properties):
        drop_index(store, root, table_id, replaced)  # drops parts that others added meanwhile, and the declaration
    return True


def drop_index(store: StateStore, root: str, table_id: str, name: str) -> None:
    """Drops the index, or the declaration of an index that waits for rows. Does nothing where it does not exist."""
    entry = store.instance().tables[table_id]
    if name in observed_indexes(open_dataset(dataset_location(root, entry))):
        committed(entry, root, lambda dataset: dataset.drop_index(name))
        reached("tables.index.dropped")
    state = refresh(store, root, table_id)
    if name in remembered_indexes(state.properties):
        _forget(store, table_id, name)


def build_or_empty(
    store: StateStore, root: str, table_id: str, index: IndexSpec, on_progress: OnProgress = no_progress
) -> None:
    """Builds the index again. Where too few rows remain for it, drops the built index, so that the declaration waits
    for rows."""
    if build_index(store, root, table_id, index, on_progress):
        return
    entry = store.instance().tables[table_id]
    if index.name in observed_indexes(open_dataset(dataset_location(root, entry))):
        committed(entry, root, lambda dataset: dataset.drop_index(index.name))
        build_index(store, root, table_id, index, on_progress)  # records the pending index without the dropped one


def catch_up(
    store: StateStore,
    root: str,
    table_id: str,
    on_progress: OnProgress = no_progress,
    plan_build: PlanBuild = in_one_part,
) -> CaughtUp:
    """Builds pending indexes that now have enough rows, and adds new rows to the others. Failures of Lance are in the
    result and are not raised."""
    built: list[str] = []
    try:
        state = refresh(store, root, table_id)
        remembered = remembered_indexes(state.properties)
        if not remembered:
            return CaughtUp()
        entry = store.instance().tables[table_id]
        location = dataset_location(root, entry)
        dataset = open_dataset(location)
        for each in remembered.values():
            missing = each.status == "pending" or (each.status == "ready" and each.dataset != state.dataset)
            if missing and has_rows_for(dataset, each.index):
                plan = plan_build(location, state.files.rows)
                build_index(store, root, table_id, each.index, on_progress, plan=plan)
                built.append(each.index.name)
        reached("tables.index.catching-up")
        dataset = open_dataset(dataset_location(root, entry))
        fragments = _fragments(dataset)
        behind = _behind(dataset, remembered, fragments)
        for lost in _lost(dataset, remembered, fragments):
            plan = plan_build(location, state.files.rows)
            build_index(store, root, table_id, remembered[lost].index, on_progress, plan=plan)
            built.append(lost)
        behind = [name for name in behind if name not in built]
        if behind:
            committed(entry, root, lambda dataset: dataset.optimize.optimize_indices(index_names=behind))
            refresh(store, root, table_id)
        left = _behind(open_dataset(dataset_location(root, entry)), remembered, fragments) if behind else []
    except DeployerError as failure:
        return CaughtUp(tuple(built), failure=str(failure))
    except KeyboardInterrupt:
        return CaughtUp(tuple(built), failure="interrupted")
    # Lance ignores an index whose files it cannot open, with only a warning in its log
    passed_over = f"Lance left {', '.join(left)} unchanged (its warning is above)" if left else ""
    return CaughtUp(tuple(built), tuple(name for name in behind if name not in left), passed_over)


def _fragments(dataset: LanceDataset) -> frozenset[int]:
    return frozenset(fragment.fragment_id for fragment in dataset.get_fragments())


def _behind(dataset: LanceDataset, remembered: Mapping[str, RememberedIndex], fragments: frozenset[int]) -> list[str]:
    """Returns the ready indexes that lack some of the existing fragments."""
    observed, now = observed_indexes(dataset), fragments & _fragments(dataset)
    ready = [name for name, each in remembered.items() if each.status == "ready" and name in observed]
    return [name for name in ready if now - observed[name].fragments]


def _lost(dataset: LanceDataset, remembered: Mapping[str, RememberedIndex], fragments: frozenset[int]) -> list[str]:
    """Returns the indexes on a field of a struct that contain none of the fragments, for example after all fragments
    were rewritten. Lance cannot extend these indexes."""
    observed = observed_indexes(dataset)
    nested = [name for name, each in remembered.items() if each.status == "ready" and "." in each.index.columns[0]]
    return [name for name in nested if fragments and name in observed and not observed[name].fragments & fragments]


def join_parts(store: StateStore, root: str, table_id: str) -> None:
    """Joins the parts of each index that has several, such as an index on vectors after some loads.

    This must precede a join of fragments: where row ids are stable, Lance refuses to join fragments that are in
    different parts of an index.
    """
    entry = store.instance().tables[table_id]
    observed = observed_indexes(open_dataset(dataset_location(root, entry)))
    for name, parts in ((name, len(each.segments)) for name, each in observed.items() if len(each.segments) > 1):

        def joined(dataset: LanceDataset, name: str = name, parts: int = parts) -> None:
            dataset.optimize.optimize_indices(index_names=[name], num_indices_to_merge=parts)

        committed(entry, root, joined)
    refresh(store, root, table_id)


def index_infos(table: ReadTable) -> tuple[IndexInfo, ...]:
    """Returns the table's indexes in the order of their names, including those that wait for rows."""
    remembered = remembered_indexes(table.state.properties)
    observed = observed_indexes(table.dataset()) if remembered else {}
    return tuple(_info(table.state, remembered[name], observed.get(name)) for name in sorted(remembered))


def _info(state: TableState, remembered: RememberedIndex, observed: ObservedIndex | None) -> IndexInfo:
    index = remembered.index
    indexed = sum(file.rows for file in state.files if observed and file.fragment_id in observed.fragments)
    waits = rows_needed(index) if remembered.status == "pending" else 0
    parameters = dict(index.parameters)
    return IndexInfo(
        index.name, index.kind, index.columns, parameters, remembered.status, indexed, state.files.rows - indexed, waits
    )


def rows_needed(index: IndexSpec) -> int:
    """Returns the smallest number of rows for which the index is built. Each codeword and each partition needs its own
    vector."""
    if index.kind not in VECTOR_KINDS:
        # Lance cannot extend an index on a field of a struct that was built when there were no rows.
        return 1 if "." in index.columns[0] else 0
    partitions, bits = (index.parameters.get(name) for name in ("num_partitions", "num_bits"))
    codewords = 2 ** (bits if isinstance(bits, int) else NUM_BITS) if index.kind.endswith("_pq") else 1
    return max(codewords, partitions if isinstance(partitions, int) else 1)


def has_rows_for(dataset: LanceDataset, index: IndexSpec) -> bool:
    """Returns whether the index can be built now."""
    return rows_for(dataset, index) >= rows_needed(index)


def rows_for(dataset: LanceDataset, index: IndexSpec) -> int:
    """Returns the number of rows for training, counted up to `rows_needed`."""
    needed = rows_needed(index)
    if index.kind not in VECTOR_KINDS or not needed:
        return min(needed, int(dataset.count_rows()))
    there = f"{quoted(index.columns[0])} IS NOT NULL"
    return int(dataset.to_table(columns=[], with_row_id=True, filter=there, limit=needed).num_rows)


def committed(entry: TableEntry, root: str, commit: Callable[[LanceDataset], T]) -> T:
    """Returns the result of `commit` on the newest version. Tries again where others commit first; raises Conflict
    after `ATTEMPTS`."""
    location, where = dataset_location(root, entry), f"table/{entry.full_name}"
    for _ in _BACKOFF.attempts(ATTEMPTS):
        dataset = open_dataset(location)
        try:
            return commit(dataset)
        except DeployerError:
            raise
        except Exception as failure:
            reason = reason_of(failure)
            if reason == "races lost":
                break
            if reason != "conflict":
                what = f"Lance could not change an index: {message_of(failure, location)}"
                raise DeployerError(what, where=where, remedy="try again") from failure
    raise Conflict(
        "other processes commit to the table faster than its indexes are built", where=where, remedy="try again"
    )


def remember(store: StateStore, table_id: str, remembered: RememberedIndex) -> None:
    """Records the index, and replaces a record of the same name."""
    change_remembered(store, table_id, lambda indexes: {**indexes, remembered.index.name: remembered})


def _forget(store: StateStore, table_id: str, name: str) -> None:
    change_remembered(store, table_id, lambda indexes: {key: value for key, value in indexes.items() if key != name})


def change_remembered(
    store: StateStore, table_id: str, change: Callable[[dict[str, RememberedIndex]], dict[str, RememberedIndex]]
) -> None:
    for _ in _BACKOFF.attempts(ATTEMPTS):
        properties = store.table(table_id).properties
        declared = with_indexes(properties, change(remembered_indexes(properties)))
        try:
            store.commit(
                table_id,
                [SetTableProperties({"declared": declared})],
                [PropertiesAre({"declared": dict(properties.declared)})],
            )
        except Conflict:
            continue
        return
    raise CommitTimedOut("the table's properties keep changing", where=f"table {table_id}", attempts=ATTEMPTS)
