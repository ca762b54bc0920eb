"""Audits of logs. An audit folds a log from its beginning, and compares entries with their checksums and snapshots with
the states that the log makes.

It uses no cache and changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from deployer.errors import Corrupt, DeployerError, NotFound, Refused
from deployer.platform.storage.envelope import digest
from deployer.platform.storage.objects import Missing, ObjectReader
from deployer.state.audit.differences import Difference, inner_differences, state_differences
from deployer.state.backends.protocol import LogReader, Record, SnapshotRecord
from deployer.state.log.entries import from_record
from deployer.state.log.reducer import empty_state, fold
from deployer.state.model.entities import State
from deployer.state.snapshots.files import SnapshotReader, manifest_of, version_of

_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class LogAudit:
    """The result of an audit of a log. `state` is its newest state, None when it cannot be folded.

    `recovered` are states of damaged snapshots that earlier data can rebuild. `damaged` are the versions of damaged
    entries, and of damaged snapshots that cannot be rebuilt. `inner` are differences within the newest state, whose log
    is intact. `unpointed` are folders without a pointer, of a process that died or is taking a snapshot.
    """

    log: str
    state: State | None
    newest: int = 0
    entries: int = 0
    snapshots: tuple[int, ...] = ()
    differences: tuple[Difference, ...] = ()
    recovered: Mapping[int, State] = field(default_factory=dict)
    damaged: tuple[int, ...] = ()
    inner: int = 0
    unpointed: tuple[str, ...] = ()

    @property
    def first_whole(self) -> int | None:
        """The oldest snapshot above all damage; None when there is none."""
        above = [version for version in self.snapshots if version > max(self.damaged, default=0)]
        return min(above, default=None)


class _ReadAgain(Exception):
    """Retention removed something between two reads."""


def audit_log(log: str, logs: LogReader, snapshots: SnapshotReader, objects: ObjectReader) -> LogAudit:
    """Audits a log. Damage is reported as a difference. Raises Refused for data that a newer deployer wrote."""
    for _ in range(_ATTEMPTS):
        try:
            return _Audit(log, logs, snapshots, objects).run()
        except _ReadAgain:
            continue
    raise Corrupt("its snapshots are removed faster than they can be read", where=f"log {log}")


class _Audit:
    def __init__(self, log: str, logs: LogReader, snapshots: SnapshotReader, objects: ObjectReader) -> None:
        self._log, self._logs, self._snapshots, self._objects = log, logs, snapshots, objects
        self._differences: list[Difference] = []
        self._recovered: dict[int, State] = {}
        self._damaged_versions: list[int] = []

    def run(self) -> LogAudit:
        floor = self._floor()
        pointers = {pointer.version: pointer for pointer in self._logs.snapshots(self._log)}
        records = self._records()
        if self._floor() != floor:
            raise _ReadAgain
        newest = max([*(each.version for each in records), *pointers], default=0)
        by_version = {record.version: record for record in records}
        state: State | None = empty_state(self._log) if floor == 0 else None
        for version in range(floor, newest + 1):
            if version > floor:
                state = self._folded(state, by_version.get(version), version)
            if version in pointers:
                state = self._compared(state, pointers[version])
        inner = list(inner_differences(state, f"the newest state of log {self._log}")) if state is not None else []
        return LogAudit(
            log=self._log,
            state=state,
            newest=newest,
            entries=len(records),
            snapshots=tuple(pointers),
            differences=(*self._differences, *inner),
            recovered=self._recovered,
            damaged=tuple(self._damaged_versions),
            inner=len(inner),
            unpointed=self._unpointed(pointers),
        )

    def _records(self) -> Sequence[Record]:
        try:
            return self._logs.records(self._log, 0)
        except Corrupt as damage:  # some backends store large bodies elsewhere, and name the first missing one
            self._differences.append(_difference(damage, f"log {self._log}"))
            return self._one_by_one()

    def _one_by_one(self) -> list[Record]:
        found: list[Record] = []
        tail = self._logs.snapshots(self._log)
        version, missing = (tail[0].version if tail else 0), 0
        while missing < 2:  # after two missing entries in a row, the log has ended, or cannot be folded any further
            version += 1
            try:
                (record,) = self._logs.records(self._log, version - 1, 1)
            except (Corrupt, ValueError):
                missing += 1
            else:
                found, missing, version = [*found, record], 0, record.version
        return found

    def _floor(self) -> int:
        try:
            tail = self._logs.tails({self._log: 0})[self._log]
        except Corrupt:  # the floor is always the version of a snapshot
            return min((each.version for each in self._logs.snapshots(self._log)), default=0)
        if tail.removed:
            raise NotFound("it was removed", where=f"log {self._log}")
        return tail.floor

    def _folded(self, state: State | None, record: Record | None, version: int) -> State | None:
        where = f"entry {version} of log {self._log}"
        if record is None:
            self._breaks(version, Difference(where, "it is missing"))
            return None
        try:
            entry = from_record(record)
            if state is None:
                return None
            return fold(state, [entry])
        except Refused:
            raise
        except DeployerError as damage:
            self._breaks(version, _difference(damage, where))
            return None

    def _breaks(self, version: int, difference: Difference) -> None:
        self._differences.append(difference)
        self._damaged_versions.append(version)

    def _compared(self, folded: State | None, pointer: SnapshotRecord) -> State | None:
        """Compares a snapshot with the state of the log, and returns the state with which the audit continues.

        It is the state of the log, or that of the snapshot if the log has no state there.
        """
        where = f"snapshot {pointer.version} of log {self._log}"
        try:
            held = self._snapshots.read(pointer).state
            self._check_parts(pointer, where)
        except Missing as missing:
            if pointer.version not in [each.version for each in self._logs.snapshots(self._log)]:
                raise _ReadAgain from None
            self._damaged(folded, pointer, Difference(where, f"{missing} is missing"))
            return folded
        except Corrupt as damage:
            self._damaged(folded, pointer, _difference(damage, where))
            return folded
        if folded is None:
            return held
        differing = [Difference(where, what) for what in state_differences(held, folded)]
        if differing:
            self._damaged(folded, pointer, *differing)
        return folded

    def _check_parts(self, pointer: SnapshotRecord, where: str) -> None:
        """Compares every file of a snapshot with its checksum. Reading the snapshot may have used the pointer's copies
        instead of the files. Raises Corrupt for a file that differs."""
        manifest = manifest_of(pointer)
        for name, part in manifest["parts"].items():
            path = f"{manifest['location']}/{name}.parquet"
            if digest(self._objects.get(path)).hex() != part["digest"]:
                raise Corrupt(f"the checksum of {path} does not match", where=where)
        path = f"{manifest['location']}/manifest.json"
        try:
            beside = json.loads(self._objects.get(path))
        except ValueError:
            beside = None
        if beside != described(pointer):
            raise Corrupt(f"{path} is not what its pointer holds", where=where)

    def _damaged(self, folded: State | None, pointer: SnapshotRecord, *differences: Difference) -> None:
        self._differences += differences
        if folded is None:
            self._damaged_versions.append(pointer.version)
        else:
            self._recovered[pointer.version] = folded

    def _unpointed(self, pointers: Mapping[int, SnapshotRecord]) -> tuple[str, ...]:
        named = set()
        for pointer in pointers.values():
            try:
                named.add(str(manifest_of(pointer)["location"]))
            except DeployerError:
                continue
        unreadable = {v for v in pointers if not any(name.split("/")[1].startswith(f"{v:020}-") for name in named)}
        folders = {path.rpartition("/")[0] for path in self._objects.list(self._log) if path.count("/") > 1}
        return tuple(sorted(each for each in folders - named if version_of(f"{each}/") not in unreadable))


def described(pointer: SnapshotRecord) -> dict[str, Any]:
    """Returns a snapshot's manifest as it is stored in its folder: without the copies of parts that pointers may
    have."""
    manifest = manifest_of(pointer)
    parts = {name: {key: part[key] for key in ("rows", "bytes", "digest")} for name, part in manifest["parts"].items()}
    return {**manifest, "parts": parts}


def _difference(error: DeployerError, where: str) -> Difference:
    return Difference(str(error.where) if error.where is not None else where, error.what)
