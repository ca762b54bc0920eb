"""Runs in separate processes on this machine. They outlive the process that started them."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import IO

from deployer.errors import Conflict, DeployerError
from deployer.runs.records import end_queued_run
from deployer.state import open_store
from deployer.state.model.entities import TableEntry
from deployer.state.model.services import Run
from deployer.state.store import StateStore

STOPPING = 10.0  #: seconds between the request that a process end and its kill


@dataclass(frozen=True, slots=True)
class LocalRun:
    """The process of a run, and the file with its stderr."""

    store: StateStore
    root: str
    entry: TableEntry
    run: Run
    process: subprocess.Popen[bytes]
    stderr: IO[bytes]

    def settle(self) -> None:
        """Ends the run as FAILED where its process ended without starting it. A started run ends when its lease
        expires."""
        self._settle(self.store)

    def last_error(self) -> str:
        """Returns the last line that the process wrote to stderr."""
        self.stderr.seek(0)
        lines = self.stderr.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    def close(self) -> None:
        """Waits for the end of the process, at most `STOPPING` seconds; then leaves it running."""
        try:
            self.process.wait(STOPPING)
        except subprocess.TimeoutExpired:
            self.leave()
        else:
            self.stderr.close()

    def stop(self) -> None:
        """Ends the process as Ctrl-C would: the run is CANCELLED, and its commits stay."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOPPING)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        try:
            with suppress(Conflict):  # the run was started, and has ended
                end_queued_run(self.store, self.entry.table_id, self.run.run_id, "CANCELLED", reason="interrupted")
        finally:
            self.stderr.close()

    def leave(self) -> None:
        """Leaves the process running. A thread of this process waits for its end and ends a run that did not start."""
        threading.Thread(target=self._collect, name=f"collect-{self.run.run_id}", daemon=True).start()

    def _collect(self) -> None:
        self.process.wait()
        try:
            with suppress(DeployerError), closing(open_store(self.root)) as store:
                self._settle(store)
        finally:
            self.stderr.close()

    def _settle(self, store: StateStore) -> None:
        code = self.process.poll()
        if code is None:
            return
        error = self.last_error()
        with suppress(Conflict):  # the run was started, and may have ended
            reason = f"its process ended with {code} before the run began{f': {error}' if error else ''}"
            end_queued_run(store, self.entry.table_id, self.run.run_id, "FAILED", reason=reason)


def start_local_run(store: StateStore, root: str, entry: TableEntry, run: Run) -> LocalRun:
    """Starts the process of a queued run of the table. SIGTERM stops the process like Ctrl-C.

    Raises OSError where the machine cannot start a process; the run stays queued.
    """
    stderr = tempfile.TemporaryFile()  # noqa: SIM115 -- the process writes to the file until it ends
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "deployer.services.worker", root, entry.full_name, run.run_id],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            start_new_session=True,  # Ctrl-C ends the waiting process, not the run
        )
    except BaseException:
        stderr.close()
        raise
    return LocalRun(store, root, entry, run, process, stderr)
