"""Rebuilds a table's log from its dataset, for a state store that was lost.

The sources are versions, commit metadata and records. Each version that the dataset keeps becomes an entry with the
time of Lance's commit, so that savepoints, jobs and `history` are restored. The dataset's record
(`deployer.state.records.document`) has what versions do not contain (keys, partitions, settings). This module does not
write anything.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from deployer.datasets.commit_metadata import RESTORE, UNDO, CommitMetadata
from deployer.datasets.dataset import open_dataset
from deployer.datasets.indexes.read import index_updates
from deployer.datasets.lance_transactions import metadata_at, transaction_of
from deployer.datasets.recovery.restored import BASE, SAVEPOINT, restored
from deployer.datasets.recovery.unrecorded import missing_updates
from deployer.datasets.storage.refs import versions_of
from deployer.errors import Corrupt, DeployerError
from deployer.state.log.entries import LogEntry
from deployer.state.log.inapplicable import Inapplicable
from deployer.state.log.reducer import apply
from deployer.state.log.service_updates import SavepointTaken
from deployer.state.log.updates import SetTableProperties, TableRebuilt, TableUpdate
from deployer.state.model.entities import File, Intent, Savepoint, TableProperties, TableState
from deployer.state.model.names import is_savepoint_name
from deployer.state.records.document import JobsRecord, TableRecord

if TYPE_CHECKING:
    import lance

Infos = Mapping[int, Sequence[CommitMetadata]]  #: by the version that the commit made
REWRITE = "rewrite"  #: the kind of commits by which a rewrite copies rows into a new dataset
_NOT_JOBS = (RESTORE, REWRITE, UNDO)  #: kinds of commits that are not jobs
STEPS = 300  #: how many versions of a dataset become entries: the newest, and those of savepoints
FRAGMENTS = 30_000  #: bound for all these versions together, which limits the time


@dataclass(frozen=True, slots=True)
class Source:
    """A current or former dataset of a table.

    `record` and `jobs` are stored in the dataset. `own_infos`: the metadata of its commits belongs to this table. In a
    dataset that was imported in place, the metadata may belong to another lake.
    """

    uri: str
    record: TableRecord
    jobs: JobsRecord | None
    own_infos: bool


@dataclass(frozen=True, slots=True)
class RebuiltLog:
    """The entries of a table's log, and the newest state that results from them. `lost` are the savepoints that no
    longer exist."""

    entries: tuple[LogEntry, ...]
    state: TableState
    versions: int
    lost: tuple[str, ...] = ()


def rebuilt_log(current: Source, retired: Sequence[Source], author: str) -> RebuiltLog:
    """Returns the log of the table that has the dataset `current`. Retired datasets that savepoints belong to come
    first.

    Raises Corrupt and NotFound for a current dataset that cannot be read.
    """
    record = current.record
    log = _Log(record.entry.table_id, author)
    wanted = {each.name: each for each in record.savepoints}
    for source in sorted(retired, key=lambda each: each.record.at):
        of_it = [each for each in wanted.values() if each.dataset == source.record.entry.dataset]
        if of_it:
            before = log.copy()
            try:
                _fold(log, source, of_it, to_newest=False)
            except (DeployerError, Inapplicable):
                log = before  # the dataset is damaged: its savepoints are reported as lost
    own = [each for each in wanted.values() if each.dataset == record.entry.dataset]
    before = log.copy()
    try:
        versions = _fold(log, current, own, to_newest=True)
    except (DeployerError, Inapplicable):
        log = before
        try:
            versions = _fold(log, current, (), to_newest=True, steps=1)
        except Inapplicable as error:
            raise Corrupt(f"what its record says does not fit its dataset: {error.what}", where=current.uri) from None
    lost = sorted(wanted.keys() - log.state.savepoints.keys())
    return RebuiltLog(tuple(log.entries), log.state, versions, tuple(lost))


@dataclass(slots=True)
class _Log:
    """A log under construction, and the state after its last entry."""

    table_id: str
    author: str
    entries: list[LogEntry] = field(default_factory=list)
    state: TableState = field(default_factory=TableState)

    def __post_init__(self) -> None:
        if not self.state.table_id:
            self.state = TableState(table_id=self.table_id)

    def copy(self) -> _Log:
        return _Log(self.table_id, self.author, [*self.entries], self.state)

    def add(self, at: int, updates: Iterable[TableUpdate], author: str = "") -> None:
        """Raises Inapplicable for updates that do not fit the state."""
        version = self.state.version + 1
        txn_id, at = uuid.uuid4().hex, max(at, self.state.at)
        entry = LogEntry(self.table_id, version, txn_id, at, author or self.author, tuple(updates))
        after = apply(self.state, entry)
        assert isinstance(after, TableState)  # noqa: S101 (updates of a table make no other)
        self.entries.append(entry)
        self.state = after


def _fold(log: _Log, source: Source, savepoints: Sequence[Savepoint], *, to_newest: bool, steps: int = STEPS) -> int:
    """Adds entries for the versions of one dataset; returns how many versions it keeps."""
    newest = open_dataset(source.uri)
    kept = {version: round(at.timestamp() * 1000) for version, at in versions_of(newest).items()}
    needed = {each.lance_version for each in savepoints} & kept.keys()
    if not to_newest:
        kept = {version: at for version, at in kept.items() if version <= max(needed, default=0)}
    if not kept:
        return 0
    infos = {version: metadata_at(newest, version) for version in kept if _trusts(source, version)}
    begin = _begin(infos)
    steps = max(1, min(steps, FRAGMENTS // max(1, len(newest.get_fragments()))))
    chosen = _chosen([version for version in kept if version >= begin] or [max(kept)], needed, steps)
    states: dict[int, TableState] = {}
    for version, following in zip(chosen, [*chosen[1:], None], strict=True):
        dataset = newest.checkout_version(version)
        if not states:
            log.add(kept[version], [_first(dataset, source, kept, _between(infos, 0, version))])
        else:
            _step(log, dataset, kept[version], states, _between(infos, log.state.lance_version, version))
        if (recorded := _recorded_now(source.jobs, version, following)) is not None:
            log.add(kept[version], [replace(_all_of(log.state), jobs=recorded.jobs, files=_files(log.state, recorded))])
        states[version] = log.state
        for each in sorted((one for one in savepoints if one.lance_version == version), key=lambda one: one.at):
            log.add(each.at, [SavepointTaken(each.name, each.expires_at, each.note)], each.author)
    if to_newest:
        _settle_properties(log, newest, source.record.properties)
    return len(kept)


def _trusts(source: Source, version: int) -> bool:
    return source.own_infos or version > (source.jobs.lance_version if source.jobs else source.record.lance_version)


def _begin(infos: Infos) -> int:
    """Returns the first version at which the dataset belongs to the table. In earlier versions a rewrite copied rows
    into it."""
    copied = 0
    for version, each in infos.items():
        if each and each[0].kind == REWRITE:
            copied = version
        elif each:
            break
    return copied


def _between(infos: Infos, above: int, up_to: int) -> Infos:
    return {version: each for version, each in infos.items() if each and above < version <= up_to}


def _chosen(versions: Sequence[int], needed: Collection[int], steps: int) -> list[int]:
    """Returns the versions that become entries, ascending."""
    return sorted({*versions[-steps:], *(version for version in versions if version in needed)})


def _first(dataset: lance.LanceDataset, source: Source, kept: Mapping[int, int], infos: Infos) -> TableRebuilt:
    """Returns the table at the first version of the rebuilt log."""
    record, version = source.record, int(dataset.version)
    known = source.jobs
    before = [each for each in known.jobs if known.lance_version < version or each.at < kept[version]] if known else []
    empty = TableState(
        version=1,
        table_id=record.entry.table_id,
        properties=_with_names(record, source.uri, dataset),
        schema=dataset.schema.serialize().to_pybytes(),
        lance_version=min(kept) - 1,
        partitions={each.partition_id: each for each in record.partitions},
        datasets=record.datasets,
        jobs={each.job_id: each for each in before},
    )
    updates = missing_updates(dataset, _expecting(empty, infos), infos=infos)
    found = apply(empty, LogEntry(empty.table_id, 2, "", kept[version], "", tuple(updates)))
    assert isinstance(found, TableState)  # noqa: S101 (updates of a table make no other)
    jobs = tuple(
        replace(each, at=kept.get(each.lance_version, each.at)) if each.job_id not in empty.jobs else each
        for each in found.jobs.values()
        if each.kind != REWRITE
    )
    # the commit that made the state does not count: the generation is the recorded one
    properties = replace(found.properties, generation=record.properties.generation)
    files, services = tuple(found.files), record.services
    return TableRebuilt(version, found.schema, properties, record.partitions, files, jobs, services, record.datasets)


def _all_of(state: TableState) -> TableRebuilt:
    return TableRebuilt(
        state.lance_version,
        state.schema,
        state.properties,
        tuple(state.partitions.values()),
        tuple(state.files),
        tuple(state.jobs.values()),
        tuple(state.services.values()),
        state.datasets,
    )


def _recorded_now(recorded: JobsRecord | None, version: int, following: int | None) -> JobsRecord | None:
    """Returns the record between this version and the next one; None where there is none."""
    if recorded is None or recorded.lance_version < version:
        return None
    return recorded if following is None or recorded.lance_version < following else None


def _files(state: TableState, recorded: JobsRecord) -> tuple[File, ...]:
    """Returns the files with their recorded order and clustering, which commit metadata does not have."""
    known = {file.fragment_id: file for file in recorded.files}
    return tuple(_with_order(file, known.get(file.fragment_id), state) for file in state.files)


def _with_order(file: File, known: File | None, state: TableState) -> File:
    if known is None or (file.rows, file.min_key, file.max_key) != (known.rows, known.min_key, known.max_key):
        return file
    partition = known.partition if known.partition in state.partitions else None
    return replace(known, partition=file.partition or partition, bytes=file.bytes)


def _step(log: _Log, dataset: lance.LanceDataset, at: int, states: Mapping[int, TableState], infos: Infos) -> None:
    """Adds the changes since the previous version; `infos` is the metadata of all commits since then."""
    state, version = log.state, int(dataset.version)
    own = infos.get(version)
    if own and own[0].kind == RESTORE and (then := _restored_state(dataset, states)) is not None:
        then_state, savepoint = then
        log.add(at, [restored(state, then_state, own[0].job_id, savepoint, version)])
        return
    log.add(at, missing_updates(dataset, _expecting(state, infos), infos=infos))


def _expecting(state: TableState, infos: Infos) -> TableState:
    """Returns the state with an intent for each of deployer's commits without files, such as a load of columns, so that
    its job counts."""
    without = {
        info.job_id: Intent(info.job_id, info.kind, 0, version - 1)
        for version, several in infos.items()
        for info in several
        if info.kind not in _NOT_JOBS and not info.files and info.job_id not in state.jobs
    }
    return replace(state, intents=without)


def _restored_state(dataset: lance.LanceDataset, states: Mapping[int, TableState]) -> tuple[TableState, str] | None:
    """Returns the state that a restore restored, and the savepoint's name; None where the restore is not valid or
    unknown."""
    version = int(dataset.version)
    transaction = transaction_of(dataset, version)
    properties = transaction.transaction_properties or {}
    then = states.get(int(getattr(transaction.operation, "version", 0) or 0))
    savepoint = str(properties.get(SAVEPOINT, ""))
    if then is None or str(properties.get(BASE)) != str(version - 1) or not is_savepoint_name(savepoint):
        return None
    return then, savepoint


def _with_names(record: TableRecord, uri: str, dataset: lance.LanceDataset) -> TableProperties:
    """Returns the recorded properties. Keys have the names of their columns in the opened version."""
    properties = record.properties
    recorded = (*properties.row_keys, *properties.sort_keys)
    names = {each.name() for each in dataset.lance_schema.fields()}
    if names.issuperset(recorded):
        return properties
    try:
        then = open_dataset(uri, record.lance_version)
    except DeployerError:
        then = open_dataset(uri)
    ids = {each.name(): each.id() for each in then.lance_schema.fields()}
    now = {each.id(): each.name() for each in dataset.lance_schema.fields()}
    named = {name: now.get(ids.get(name, -1), name) for name in recorded}
    return replace(
        properties,
        row_keys=tuple(named[name] for name in properties.row_keys),
        sort_keys=tuple(named[name] for name in properties.sort_keys),
    )


def _settle_properties(log: _Log, newest: lance.LanceDataset, recorded: TableProperties) -> None:
    """Brings the last state to the recorded properties, where older versions had other indexes; then to the dataset's
    own indexes."""
    state = log.state
    if state.properties.declared != recorded.declared:
        log.add(state.at, [SetTableProperties({"declared": recorded.declared})])
    if updates := index_updates(newest, log.state):
        log.add(log.state.at, updates)
