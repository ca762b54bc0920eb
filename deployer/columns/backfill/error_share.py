"""Counts the share of a job's rows for which its function failed, over all runs, threads and processes of the job.

Each process stores its counts with the job's checkpoints, in `counts/PROCESS`, at the end of each piece of work, and
reads the counts of other processes. A process that works on tasks of the run also does so once a second.
"""

from __future__ import annotations

import json
import threading
import uuid
from dataclasses import dataclass, field
from typing import Any

from deployer.datasets.storage.job_folders import job_folder
from deployer.datasets.storage.options import objects_at
from deployer.errors import DeployerError
from deployer.functions.calls.caller import too_many_failed
from deployer.functions.error_policy import ErrorPolicy
from deployer.platform.storage.envelope import seal, unseal
from deployer.platform.storage.objects import Missing
from deployer.platform.system.clock import Clock

_SYSTEM = Clock()
INTERVAL = 1.0  #: seconds after which a process that works on tasks stores its counts again


@dataclass(slots=True)
class _Counts:
    """The counts of a job by this process, the last counts that it read of other processes (`others`), and when it read
    them (`at`, a monotonic time in seconds)."""

    process: str = field(default_factory=lambda: uuid.uuid4().hex)
    rows: int = 0
    failed: int = 0
    stored: int = 0  #: the number of rows in the stored counts
    others: tuple[int, int] = (0, 0)  #: rows, and failed rows
    at: float | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


class ErrorShare:
    """The counts of a job's rows, which end its run where more rows failed than the policy allows.

    Without a `policy`, no share is too large. The object can be pickled. Rows that a killed process computed may count
    twice.
    """

    def __init__(
        self,
        policy: ErrorPolicy | None,
        name: str,
        root: str,
        table_id: str,
        job_id: str,
        clock: Clock = _SYSTEM,
    ) -> None:
        self._policy = policy if policy is not None and policy.max_share < 1 else None
        self._name, self._root, self._clock = name, root, clock
        self._folder = f"{job_folder(table_id, job_id)}/counts"
        self._counts, self._is_of_tasks = _Counts(), False

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_counts": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _counts=_of_process(state["_root"], state["_folder"]), _is_of_tasks=True)

    def count(self, rows: int, failed: int) -> None:
        """Adds rows for which the function was called. Raises FunctionFailed where too many rows of the job failed."""
        if self._policy is None:
            return
        counts = self._counts
        with counts.lock:
            counts.rows, counts.failed = counts.rows + rows, counts.failed + failed
            now = self._clock.monotonic()
            is_due = self._is_of_tasks and (counts.at is None or now - counts.at >= INTERVAL)
            if is_due or self._exceeded():
                counts.at = now
                self._store()
                counts.others = self._of_others()
            self._require()

    def require_below(self) -> None:
        """Raises FunctionFailed where too many rows failed, by the counts that are in memory."""
        if self._policy is not None:
            with self._counts.lock:
                self._require()

    def settle(self) -> None:
        """Stores the counts of this process; called at the end of a piece of work."""
        if self._policy is not None:
            with self._counts.lock:
                self._store()

    def require(self) -> None:
        """Raises FunctionFailed where too many rows failed, by the stored counts of all processes."""
        if self._policy is not None:
            with self._counts.lock:
                self._counts.others = self._of_others()
                self._require()

    def _sums(self) -> tuple[int, int]:
        counts = self._counts
        return counts.rows + counts.others[0], counts.failed + counts.others[1]

    def _exceeded(self) -> bool:
        rows, failed = self._sums()
        return self._policy is not None and self._policy.exceeded(failed, rows)

    def _require(self) -> None:
        rows, failed = self._sums()
        if self._policy is not None and self._exceeded():
            then = "then start a job with another id, as this one has the failed rows among its checkpoints"
            raise too_many_failed(self._name, self._policy, failed, rows, then)

    def _store(self) -> None:
        counts = self._counts
        if counts.stored != counts.rows:
            document = json.dumps({"rows": counts.rows, "failed": counts.failed}).encode()
            objects_at(self._root).put(f"{self._folder}/{counts.process}", seal(document), durable=False)
            counts.stored = counts.rows

    def _of_others(self) -> tuple[int, int]:
        objects, rows, failed = objects_at(self._root), 0, 0
        for path in objects.list(self._folder):
            if path.endswith(f"/{self._counts.process}"):
                continue
            try:
                document = json.loads(unseal(objects.get(path), path))
            except (Missing, DeployerError, ValueError):
                continue
            rows, failed = rows + document["rows"], failed + document["failed"]
        return rows, failed


_last: dict[tuple[str, str], _Counts] = {}  #: the counts of the last job on whose tasks this process worked
_last_lock = threading.Lock()


def _of_process(root: str, folder: str) -> _Counts:
    """Returns the counts of a job in this process, which all of the job's tasks in this process share."""
    with _last_lock:
        found = _last.get((root, folder)) or _Counts()
        _last.clear()
        _last[root, folder] = found
    return found
