"""The state of a table after a restore: recording a restore, and rolling forward a restore whose record was lost.

A restore is one commit to Lance, which holds the rows of a savepoint's version. Lance accepts it whatever others
committed after it was prepared, and so undoes those commits. Therefore a restore names its base version, and is valid
only as the version right after it. The first process that finds an invalid restore takes it back, before anything is
committed on top. The commit that takes it back is a restore too, with the same rule. A restore of several tables counts
only once it is recorded for all of them at once (see `restored_together`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from deployer.datasets.commit_metadata import RESTORE, UNDO, CommitMetadata
from deployer.datasets.dataset import latest_version
from deployer.datasets.lance_transactions import Restore, commit_now, metadata_at, metadata_since
from deployer.datasets.recovery.past_version import state_at
from deployer.errors import Corrupt, InvalidInput, NotFound
from deployer.state.log.updates import TableRestored
from deployer.state.model.entities import TableState
from deployer.state.transactions.tables import to_record

if TYPE_CHECKING:
    import lance

    from deployer.state.reader import StateReader
    from deployer.state.store import StateStore

#: properties beside the commit metadata
STATE, SAVEPOINT, BASE = "deployer.restores", "deployer.savepoint", "deployer.base"


def restored(
    now: TableState, then: TableState, run_id: str, savepoint: str, lance_version: int, retired_location: str = ""
) -> TableRestored:
    """Returns the update that gives a table its state of `then`. The owner does not change."""
    from deployer.state.model.declared_properties import OWNER

    declared = {name: value for name, value in then.properties.declared.items() if name != OWNER}
    if OWNER in now.properties.declared:
        declared[OWNER] = now.properties.declared[OWNER]
    return TableRestored(
        job_id=run_id,
        savepoint=savepoint,
        number=then.dataset,
        retired_location=retired_location,
        lance_version=lance_version,
        schema=then.schema,
        properties=replace(then.properties, declared=declared),
        partitions=tuple(then.partitions.values()),
        files=tuple(then.files),
        jobs=tuple(then.jobs.values()),
        services=tuple(then.services.values()),
    )


def commit_restore(
    location: str, dataset: lance.LanceDataset, version: int, run_id: str, savepoint: str, state_version: int
) -> None:
    """Commits the content of `version` as the next version of the dataset, with metadata that records the whole
    restore."""
    properties = {STATE: str(state_version), SAVEPOINT: savepoint, BASE: str(int(dataset.version))}
    commit_now(location, dataset, Restore(version), [CommitMetadata(run_id, RESTORE, 0)], properties)


@dataclass(frozen=True, slots=True)
class ValidRestore:
    """A valid restore that Lance has and the log lacks. It is to be recorded."""

    update: TableRestored


@dataclass(frozen=True, slots=True)
class WaitingRestore:
    """A restore of several tables that is not recorded yet.

    Until it is recorded or taken back, the table keeps its state from before. `built_on`: others have committed on top
    of it.
    """

    update: TableRestored
    built_on: bool


@dataclass(frozen=True, slots=True)
class UndoneRestore:
    """A restore that is not valid. The table keeps its state from before that version, which is the dataset's
    newest."""

    version: int


@dataclass(frozen=True, slots=True)
class _RestoreMetadata:
    """The properties of a restore's commit beside its metadata: the state that it restores, the savepoint, and its base
    version."""

    state: int
    savepoint: str
    base: int

    @staticmethod
    def of(properties: Mapping[str, str]) -> _RestoreMetadata | None:
        """Returns None when another program wrote the properties in another form."""
        try:
            return _RestoreMetadata(int(properties[STATE]), properties[SAVEPOINT], int(properties[BASE]))
        except (KeyError, ValueError):
            return None


def judged_restore(
    store: StateReader, dataset: lance.LanceDataset, state: TableState
) -> ValidRestore | WaitingRestore | UndoneRestore | None:
    """Returns what to do with a restore that Lance has and the log lacks.

    Changes nothing. Returns None when no restore is missing, when it was taken back, or when it has to count as a
    commit of another program: its savepoint no longer exists, or others committed on top of a restore that is invalid
    or whose run was ended.
    """
    infos = [
        (version, info)
        for version, (info, *_) in sorted(
            metadata_since(dataset, state.lance_version).items()
        )  # it is the only job of its commit
    ]
    if infos and infos[-1][1].kind == UNDO and _is_misplaced_undo(dataset, infos[-1][0]):
        return UndoneRestore(infos[-1][0])  # its restore may be settled and have no intent
    found = [(version, info.job_id) for version, info in infos if info.kind == RESTORE and info.job_id in state.intents]
    transaction = dataset.read_transaction(found[0][0]) if found else None
    metadata = _RestoreMetadata.of(transaction.transaction_properties) if transaction is not None else None
    if transaction is None or metadata is None:
        return None
    version, run_id = found[0]
    if metadata.base != version - 1:  # read from Lance's record, because the state may have the undone changes already
        return UndoneRestore(version) if version == dataset.version else None
    if version != state.lance_version + 1:
        return None
    try:
        then = store.table(state.table_id, at=metadata.state)
        if then.dataset == state.dataset:
            then = state_at(dataset.checkout_version(transaction.operation.version), then)
    except (NotFound, InvalidInput, Corrupt):
        return None
    update = restored(state, then, run_id, metadata.savepoint, version)
    if not state.intents[run_id].together:
        return ValidRestore(update)
    if any(info.kind == UNDO and info.job_id == _undo_of(run_id) for _, info in infos):
        return None
    run, built_on = state.runs.get(run_id), version < dataset.version
    return None if built_on and (run is None or run.status != "RUNNING") else WaitingRestore(update, built_on)


def _is_misplaced_undo(dataset: lance.LanceDataset, version: int) -> bool:
    """Returns whether the dataset's newest version takes back a restore and also undoes later commits of others."""
    properties = dataset.read_transaction(version).transaction_properties
    return version == dataset.version and properties.get(BASE) not in (None, str(version - 1))


def roll_restore(store: StateStore, dataset: lance.LanceDataset, state: TableState) -> TableState | None:
    """Records a valid restore that Lance has and the log lacks, or undoes an invalid one; returns the resulting state.

    Returns None in the same cases as `judged_restore`. `settle_together` handles a restore of several tables.
    """
    match judged_restore(store, dataset, state):
        case ValidRestore(update):
            return store.commit(state.table_id, [update], to_record(state.lance_version, state.dataset))
        case UndoneRestore():
            undo_restore(dataset)
            return state
        case WaitingRestore():
            return state
        case None:
            return None


def undo_restore(dataset: lance.LanceDataset) -> None:
    """Takes back the newest version, which is a restore or the undoing of a restore."""
    version = int(dataset.version)
    if latest_version(dataset.uri) != version:
        return  # another process was faster
    (info, *_) = metadata_at(dataset, version)
    metadata = CommitMetadata(_undo_of(info.job_id), UNDO, 0)
    commit_now(dataset.uri, dataset, Restore(version - 1), [metadata], {BASE: str(version)})


def _undo_of(run_id: str) -> str:
    return f"undo-{run_id}"
