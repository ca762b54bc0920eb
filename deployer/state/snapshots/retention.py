"""The schedule of snapshots, and the removal of the log entries that snapshots replace."""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from deployer.errors import DeployerError
from deployer.platform.storage.objects import ObjectStore
from deployer.platform.system.clock import Clock
from deployer.platform.system.failpoints import reached
from deployer.state.backends.protocol import REMOVED, Backend
from deployer.state.log.cache import CachedState, StateCache, log_of
from deployer.state.model.entities import InstanceState, State, TableState
from deployer.state.snapshots.files import SnapshotWriter, manifest_of, version_of

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SnapshotPolicy:
    """The rule for when a snapshot is due and how long it is kept. Times are in ms.

    A snapshot is due after `entries` entries. For a large state it is due after 1% of the number of its tables, or of
    its files and jobs, at most 10,000, so that the cost of snapshots per commit does not grow with the table. It is
    also due when the entries since the last snapshot have as many bytes as that snapshot, and at least `log_bytes`.
    """

    entries: int = 500
    log_bytes: int = 1 << 20
    keep: int = 2  #: number of newest snapshots that are kept at any age
    keep_for: int = 7 * 24 * 3600 * 1000

    def is_due(self, known: CachedState) -> bool:
        interval = max(self.entries, min(10_000, _size(known.state) // 100))
        over = known.log_length - interval
        # One writer takes the snapshot, and the others proceed. If it dies, the writer of the entry that is a tenth of
        # the interval later takes the snapshot.
        if over >= 0 and over % max(1, interval // 10) == 0:
            return True
        return known.log_bytes >= max(self.log_bytes, known.snapshot_bytes)


def _size(state: State) -> int:
    return len(state.tables) if isinstance(state, InstanceState) else state.files.count + len(state.jobs)


class Retention:
    def __init__(
        self,
        backend: Backend,
        objects: ObjectStore,
        snapshots: SnapshotWriter,
        cache: StateCache,
        policy: SnapshotPolicy,
        clock: Clock,
    ) -> None:
        self._backend, self._objects, self._snapshots = backend, objects, snapshots
        self._cache, self._policy, self._clock = cache, policy, clock

    def after_commit(self, known: CachedState) -> None:
        """Takes a snapshot when one is due. A failure is only logged, because the commit has succeeded already."""
        if not self._policy.is_due(known):
            return
        log = log_of(known.state)
        try:
            taken = self._snapshots.take(known.state)
            if taken is not None:
                self._cache.keep([taken])
                self.remove_old(log)
        except Exception as error:
            _LOG.warning("log %s at version %s has no snapshot yet: %s", log, known.state.version, error)

    def remove_old(self, log: str) -> None:
        """Raises the log's floor to the oldest snapshot that the policy keeps, and removes everything below the floor.

        The policy keeps the newest `keep` snapshots, all snapshots younger than `keep_for`, and the one before those,
        from which states of that time are folded. It also keeps the snapshot that the oldest savepoint needs and
        everything after it, because a log has no gaps. Files are removed after the pointers: a reader that finds a file
        missing reads the newest pointer.
        """
        pointers = self._backend.snapshots(log)
        since = self._clock.now() - self._policy.keep_for
        recent = [i for i, pointer in enumerate(pointers) if pointer.at >= since]
        first = min(len(pointers) - self._policy.keep, recent[0] - 1 if recent else len(pointers))
        if first > 0:
            # The state is read after the pointers: a savepoint that it lacks is of a version above all pointers.
            first = min(first, self._needed_by_savepoints(log, [pointer.version for pointer in pointers]))
        if first > 0:
            floor = pointers[first].version
            reached("retention:before-truncate")
            self._backend.truncate(log, floor)
            reached("retention:before-delete")
            self._delete_below(log, floor)

    def _needed_by_savepoints(self, log: str, versions: Sequence[int]) -> int:
        """Returns the index in `versions` of the newest snapshot from which the states of all savepoints can be made.

        Returns the number of versions for a log without savepoints.
        """
        state = self._cache.refresh([log])[log].state
        if not isinstance(state, TableState) or not state.savepoints:
            return len(versions)
        oldest = min(each.state_version for each in state.savepoints.values())
        return max(0, bisect_right(versions, oldest) - 1)

    def forget_history(self, log: str) -> None:
        """Takes a snapshot and removes all earlier states, except those that savepoints need.

        The floor is raised to the new snapshot, or to the newest one from which the states of all savepoints can be
        made. The removed data is also wiped from the files of the state store, unless other processes use them.
        """
        known = self._cache.refresh([log])[log]
        if (taken := self._snapshots.take(known.state)) is not None:
            self._cache.keep([taken])
        pointers = self._backend.snapshots(log)
        first = min(len(pointers) - 1, self._needed_by_savepoints(log, [pointer.version for pointer in pointers]))
        if first >= 0:
            floor = pointers[first].version
            self._backend.truncate(log, floor)
            try:
                self._backend.wipe()
            except DeployerError as error:  # other processes use the store; the bytes that remain are never read
                _LOG.warning("bytes of removed states stay in the state store until it is written again: %s", error)
            reached("retention:before-delete")
            self._delete_below(log, floor)

    def remove_all(self, log: str) -> None:
        """Removes a log permanently: nothing can be committed to it again."""
        self._backend.truncate(log, REMOVED)
        self._cache.forget(log)
        self._objects.delete(self._objects.list(log))

    def _delete_below(self, log: str, floor: int) -> None:
        """Deletes the files of snapshots at or below the floor that have no pointer.

        A pointer cannot be added at or below the floor, so these files do not belong to a snapshot that is being taken.
        """
        pointed, unreadable = set(), set()
        for pointer in self._backend.snapshots(log):
            try:
                pointed.add(str(manifest_of(pointer)["location"]))
            except DeployerError:  # the pointer is damaged, and the files may be needed to repair it
                unreadable.add(pointer.version)
        found = [path for path in self._objects.list(log) if 0 <= version_of(path) <= floor]
        self._objects.delete(
            [path for path in found if path.rpartition("/")[0] not in pointed and version_of(path) not in unreadable]
        )
