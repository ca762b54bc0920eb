"""Removes old versions of a dataset, by age and number, except needed ones.

The following versions are needed: versions with a tag, a branch or a savepoint; the base version of a pending commit
and all later ones, which Lance reads for the commit; the newest version at the start of a running run or rewrite, and
all later ones; versions that readers of changes lease, and all later ones; and versions for the table's
`retain_changes`.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deployer.datasets.dataset import open_dataset, versions_written
from deployer.datasets.storage.refs import branch_points, tags_of
from deployer.live.reader import retained_changes
from deployer.platform.system.failpoints import reached
from deployer.platform.text.units import describe_duration, parse_duration
from deployer.state.model.entities import TableState
from deployer.state.model.services import CHANGES_LEASE
from deployer.tables.inspect.savepoint_tags import PREFIX
from deployer.tables.open_table import OpenTable, ReadTable, to_change

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset


@dataclass(frozen=True, slots=True)
class OldVersions:
    """The rule for removal: versions older than `older_than`, except the newest `keep`. The run `own_run` does not need
    versions itself."""

    older_than: dt.timedelta
    keep: int = 1
    own_run: str = ""


@dataclass(frozen=True, slots=True)
class RemovedVersions:
    """The number and the ids of the removed versions, and the bytes of all files that only these versions had."""

    versions: int = 0
    bytes: int = 0
    numbers: tuple[int, ...] = ()


def remove_versions(
    table: ReadTable,
    wanted: OldVersions,
    at: float,
    expired: Collection[str] = (),
    abandoned: Collection[str] = (),
    *,
    dry_run: bool = False,
) -> RemovedVersions:
    """Removes the versions that are old and not needed at `at` (seconds since 1970), and the files that only they have.

    For a dry run, `expired` has the savepoints and `abandoned` the jobs that a real run would have removed before.
    """
    dataset = open_dataset(table.location)
    old = _old(table, dataset, wanted, at, expired, abandoned)
    if not old:
        return RemovedVersions()
    if dry_run:
        stats = dataset.explain_cleanup_old_versions(versions=old, error_if_tagged_old_versions=False).stats
        return RemovedVersions(len(old), int(stats.bytes_removed), tuple(sorted(old)))
    to_change(table).store.keep_record(table.entry.table_id)  # the metadata of these versions is about to be removed
    stats = dataset.cleanup_old_versions(versions=old, error_if_tagged_old_versions=False)
    reached("tables.collect.versions")
    return RemovedVersions(int(stats.old_versions), int(stats.bytes_removed), tuple(sorted(old)))


def kept_versions(table: ReadTable, wanted: OldVersions, at: float | None = None) -> dict[int, str]:
    """Returns the versions before the newest one that a clean-up at `at` (seconds since 1970) keeps, each with the
    reason."""
    state, written = table.state, versions_written(table.location)
    dataset = open_dataset(table.location)
    reasons = {version: f"tag {name}" for name, version in tags_of(dataset).items() if not name.startswith(PREFIX)}
    reasons |= dict.fromkeys(branch_points(dataset), "a branch begins at it")
    reasons |= {
        each.lance_version: f"savepoint {each.name}"
        for each in state.savepoints.values()
        if each.dataset == state.dataset
    }
    newest_first = sorted(written, reverse=True)
    in_use = oldest_in_use(state, written, wanted.own_run)
    now = time.time() if at is None else at
    gone, changes_from = frozenset(_old(table, dataset, wanted, now, (), ())), _changes_from(state, written, now)
    found = {}
    for place, version in enumerate(newest_first[1:], 1):
        if version in gone:
            continue
        if version in reasons:
            found[version] = reasons[version]
        elif in_use is not None and version >= in_use:
            found[version] = "work in progress may need it"
        elif version >= changes_from:
            found[version] = f"changes of the last {retained_changes(state)} are kept"
        elif place < wanted.keep:
            found[version] = f"one of the newest {wanted.keep:,}"
        else:
            found[version] = f"younger than {describe_duration(wanted.older_than)}"
    return found


def remove_numbered(table: OpenTable, versions: Collection[int]) -> int:
    """Removes these versions with their own files, except needed ones; returns the number of removed versions."""
    dataset, written = open_dataset(table.location), versions_written(table.location)
    kept = set(tags_of(dataset).values()) | branch_points(dataset)
    kept |= {each.lance_version for each in table.state.savepoints.values() if each.dataset == table.state.dataset}
    floor = oldest_in_use(table.state, written)
    gone = sorted(
        each
        for each in written
        if each in versions
        and each not in kept
        and each < table.state.lance_version
        and (floor is None or each < floor)
    )
    if gone:
        table.store.keep_record(table.entry.table_id)  # the metadata of these versions is about to be removed
        dataset.cleanup_old_versions(versions=gone, error_if_tagged_old_versions=False)
        reached("tables.collect.versions")
    return len(gone)


def oldest_in_use(state: TableState, written: dict[int, float], own_run: str = "") -> int | None:
    """Returns the oldest version that running work may need, which also needs all later versions. Returns None where no
    work needs a version."""
    needed = _read_by_others(state, written, sorted(written, reverse=True), own_run, ())
    return min(needed, default=None)


def _old(
    table: ReadTable,
    dataset: LanceDataset,
    wanted: OldVersions,
    at: float,
    expired: Collection[str],
    abandoned: Collection[str],
) -> list[int]:
    state, written = table.state, versions_written(table.location)
    # tags of savepoints are left out here, because the state has the savepoints
    kept = {version for name, version in tags_of(dataset).items() if not name.startswith(PREFIX)}
    kept |= branch_points(dataset)
    kept |= {
        each.lance_version
        for each in state.savepoints.values()
        if each.dataset == state.dataset and each.name not in expired
    }
    newest_first = sorted(written, reverse=True)
    kept |= {version for version in written if version >= _changes_from(state, written, at)}
    # A savepoint that this state does not contain yet is of the state's newest version or of a later one.
    floor = min(
        [state.lance_version, *_read_by_others(state, written, newest_first, wanted.own_run, abandoned, expired)]
    )
    beyond = [each for each in newest_first[wanted.keep :] if each < floor and each not in kept]
    return list(_older(dataset, beyond, written, at - wanted.older_than.total_seconds()))


def _changes_from(state: TableState, written: dict[int, float], at: float) -> int:
    """Returns the version from which on all versions are kept, so that changes of the declared time before `at` can be
    read. This is the newest version at the start of that time. Where the table declares no time, the returned number is
    above all versions."""
    declared = retained_changes(state)
    if declared is None:
        return max(written, default=0) + 1
    since = at - parse_duration(declared).total_seconds()
    before = [version for version, when in written.items() if when <= since]
    return max(before, default=min(written, default=0))


def _older(dataset: LanceDataset, versions: Sequence[int], written: dict[int, float], limit: float) -> Iterator[int]:
    """Yields the versions that were committed before `limit`.

    A manifest names all files of its version, so reading thousands of them takes long. A manifest is read only if its
    file is not older than `limit`, which is the case for all manifests of a copied folder. Reading ends at the first
    version that was committed later.
    """
    yield from (each for each in versions if written[each] < limit)
    for version in sorted(each for each in versions if written[each] >= limit):
        if _seconds(dataset.checkout_version(version).get_version()["timestamp"]) >= limit:
            return
        yield version


def _read_by_others(
    state: TableState,
    written: dict[int, float],
    newest_first: Sequence[int],
    own_run: str,
    abandoned: Collection[str],
    expired: Collection[str] = (),
) -> Iterator[int]:
    """Yields, for each running piece of work, the oldest version that it may need."""
    yield from (each.base_lance_version for job, each in state.intents.items() if job not in abandoned)
    yield from (
        each.lance_version
        for each in state.savepoints.values()
        if each.dataset == state.dataset and each.name.startswith(CHANGES_LEASE) and each.name not in expired
    )
    begun = [each.since for each in state.datasets if each.status == "writing"]
    begun += [
        run.started_at
        for run in state.runs.values()
        if run.status == "RUNNING" and run.run_id != own_run and run.started_at is not None
    ]
    for moment in begun:
        yield next((version for version in newest_first if written[version] * 1000 <= moment), newest_first[-1])


def _seconds(stamp: Any) -> float:
    return float(stamp.timestamp())  # Lance returns local times of the machine, without a zone
