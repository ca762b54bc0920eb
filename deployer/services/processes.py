"""Runs in processes of their own on this machine, which go on when whoever started them ends."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

from deployer.errors import Conflict
from deployer.services.runs import end_queued_run
from deployer.state.model import TableEntry
from deployer.state.services import Run
from deployer.state.store import StateStore


@dataclass(frozen=True, slots=True)
class LocalRun:
    """A run's process, and where its last words are."""

    store: StateStore
    entry: TableEntry
    run: Run
    process: subprocess.Popen[bytes]
    said: IO[bytes]

    def settle(self) -> None:
        """Fails the run when its process ended without starting it. Whatever else a process leaves, its lease tells."""
        code = self.process.poll()
        if code is None:
            return
        words = self.last_words()
        with suppress(Conflict):  # it was started, and may be over
            reason = f"its process ended with {code} before the run began{f': {words}' if words else ''}"
            end_queued_run(self.store, self.entry.table_id, self.run.run_id, "FAILED", reason=reason)

    def last_words(self) -> str:
        """The last line that the process said of what is wrong."""
        self.said.seek(0)
        words = self.said.read().decode(errors="replace").strip().splitlines()
        return words[-1] if words else ""

    def close(self) -> None:
        """After its end."""
        self.said.close()


def start_local_run(store: StateStore, root: str, entry: TableEntry, run: Run) -> LocalRun:
    """Starts the process of a queued run of that table. SIGTERM stops it as Ctrl-C would."""
    said = tempfile.TemporaryFile()  # noqa: SIM115 -- the process writes to it for as long as it is there
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "deployer.services.worker", root, entry.full_name, run.run_id],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=said,
        start_new_session=True,  # Ctrl-C is for who waits, not for the run
    )
    return LocalRun(store, entry, run, process, said)
