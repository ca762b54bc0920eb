"""Read-only access to the states of an instance, for previews, queries and reports."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, cast

from deployer.errors import DeployerError, InvalidInput, NotFound
from deployer.platform.storage.objects import ObjectReader
from deployer.platform.system.clock import Clock
from deployer.platform.system.progress import OnProgress, no_progress
from deployer.state.backends.protocol import LogReader
from deployer.state.log.cache import StateCache
from deployer.state.log.entries import DamagedEntry, LogEntry, from_record, read_or_damaged
from deployer.state.model.entities import INSTANCE_LOG, InstanceState, TableState
from deployer.state.snapshots.files import SnapshotReader
from deployer.state.snapshots.history import At, state_at

if TYPE_CHECKING:
    from deployer.state.audit.logs import LogAudit
    from deployer.state.transfer.export import Export


class StateReader:
    """Read-only access to the state of one instance. It does not write to the storage, and takes no lock there.

    It is safe for threads and processes. States are immutable values.
    """

    def __init__(self, logs: LogReader, objects: ObjectReader, clock: Clock | None = None) -> None:
        self._logs, self._objects, self._clock = logs, objects, clock or Clock()
        self._snapshots = SnapshotReader(logs, objects)
        self._cache = StateCache(logs, self._snapshots.load)

    def instance(self, at: At | None = None) -> InstanceState:
        """Returns the newest state of the instance, or an earlier one if `at` is given.

        `at` is a version of the log, a `Time` or a datetime with a time zone. The newest state has version 0 when
        nothing was committed yet. Raises NotFound when the earlier state is not kept.
        """
        if at is not None:
            return cast(InstanceState, state_at(INSTANCE_LOG, at, self._logs, self._snapshots))
        return cast(InstanceState, self._cache.refresh([INSTANCE_LOG])[INSTANCE_LOG].state)

    def table(self, table_id: str, at: At | None = None) -> TableState:
        """Returns the newest state of a table, or an earlier one if `at` is given (as in `instance`).

        Raises NotFound for a table or a state that does not exist.
        """
        if at is not None:
            return cast(TableState, state_at(checked_log(table_id), at, self._logs, self._snapshots))
        return self.tables([table_id])[table_id]

    def tables(self, table_ids: Iterable[str]) -> dict[str, TableState]:
        """Returns the newest states of several tables, all as of one moment.

        Raises NotFound if one of the tables does not exist.
        """
        known = self._cache.refresh(map(checked_log, table_ids))
        for log, each in known.items():
            if each.state.version == 0:
                raise _no_table(log)
        return {log: cast(TableState, each.state) for log, each in known.items()}

    def each_table(
        self, table_ids: Iterable[str], on_progress: OnProgress = no_progress
    ) -> tuple[dict[str, TableState], dict[str, DeployerError]]:
        """Returns the states of all tables that can be read, and the errors of the others.

        Raises errors that concern all tables, such as OutcomeUnknown.
        """
        known, failures = self._cache.refresh_each(map(checked_log, table_ids), on_progress)
        absent = {log for log, each in known.items() if each.state.version == 0}
        failures |= {log: _no_table(log) for log in absent}
        return {log: cast(TableState, each.state) for log, each in known.items() if log not in absent}, failures

    def log(self, log: str, after: int = 0, limit: int | None = None) -> list[LogEntry]:
        """Returns the kept entries above version `after`, oldest first, at most `limit`."""
        return [from_record(record) for record in self._logs.records(checked_log(log), after, limit)]

    def log_with_damage(self, log: str, after: int = 0, limit: int | None = None) -> list[LogEntry | DamagedEntry]:
        """Returns the entries as `log` does, with a DamagedEntry in place of each entry that cannot be read."""
        return [read_or_damaged(record) for record in self._logs.records(checked_log(log), after, limit)]

    def logs(self) -> list[str]:
        """Returns the names of all logs that are not empty."""
        return list(self._logs.logs())

    def audit(self, log: str) -> LogAudit:
        """Returns an audit of the log, which folds it from its beginning and compares it (see `audit`).

        The cache is not used.
        """
        from deployer.state.audit.logs import audit_log  # imported here, because writers do not need it

        return audit_log(checked_log(log), self._logs, self._snapshots, self._objects)

    def export_to(self, path: Path, on_progress: OnProgress = no_progress) -> Export:
        """Writes all kept entries and snapshots into one file, as of one moment (see `transfer.export`)."""
        from deployer.state.transfer.export import export_store

        return export_store(path, self._logs, self._objects, self._clock.now(), on_progress)

    def close(self) -> None:
        self._logs.close()


def checked_log(log: str) -> str:
    """Returns the name of a log. The name is also used for a folder: raises InvalidInput for an invalid one."""
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", log):
        raise InvalidInput(f"{log!r} is not a table id", remedy="table ids are letters, digits, - and _, at most 64")
    return log


def _no_table(log: str) -> NotFound:
    return NotFound("the table does not exist", where=f"table {log}")
