"""Runs in processes of their own on this machine, which outlive the process that started them."""

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

STOPPING = 10.0  #: seconds after which a process that was asked to end is killed


@dataclass(frozen=True, slots=True)
class LocalRun:
    """A run's process, and the file that has its stderr."""

    store: StateStore
    root: str
    entry: TableEntry
    run: Run
    process: subprocess.Popen[bytes]
    stderr: IO[bytes]

    def settle(self) -> None:
        """Fails the run when its process ended without starting it. A started run is ended by its lease."""
        self._settle(self.store)

    def last_error(self) -> str:
        """Returns the last line that the process wrote to stderr."""
        self.stderr.seek(0)
        lines = self.stderr.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    def close(self) -> None:
        """Waits for the process, which ends after its run."""
        try:
            self.process.wait(STOPPING)
        except subprocess.TimeoutExpired:
            self.leave()
        else:
            self.stderr.close()

    def stop(self) -> None:
        """Ends the process as Ctrl-C would: the run is CANCELLED, and keeps what it has committed."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOPPING)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        try:
            with suppress(Conflict):  # it was started, and has ended
                end_queued_run(self.store, self.entry.table_id, self.run.run_id, "CANCELLED", reason="interrupted")
        finally:
            self.stderr.close()

    def leave(self) -> None:
        """Leaves the process running. A thread of this process collects it when it has ended."""
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
        with suppress(Conflict):  # it was started, and may have ended
            reason = f"its process ended with {code} before the run began{f': {error}' if error else ''}"
            end_queued_run(store, self.entry.table_id, self.run.run_id, "FAILED", reason=reason)


def start_local_run(store: StateStore, root: str, entry: TableEntry, run: Run) -> LocalRun:
    """Starts the process of a queued run of that table. SIGTERM stops it like Ctrl-C. Raises OSError when the machine
    cannot start a process; the run stays queued.
    """
    stderr = tempfile.TemporaryFile()  # noqa: SIM115 -- the process writes to it for as long as it is there
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
