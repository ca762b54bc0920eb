"""A stack's state on disk through one run: opened, journaled, folded into the checkpoint.

Whenever no run is active the checkpoint alone is the truth. A journal that lies there without a run was left by a
kill: the next run folds it into the checkpoint before anything else, and `export` and previews read through it.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from deployer.engine.backend import (
    StackFiles,
    add_history,
    encode_checkpoint,
    ensure_layout,
    read_checkpoint,
    sync_folder,
    write_checkpoint,
)
from deployer.engine.deployment import Opened, open_deployment, to_deployment
from deployer.engine.journal import Journal, fingerprint, read_journal
from deployer.engine.snapshot import Begin, Snapshot, in_dependency_order
from deployer.errors import Conflict
from deployer.state.failpoints import reached

_ATTEMPTS = 3


@dataclass
class StackStore:
    """Reads and writes one stack. Whoever calls `open(fold=True)`, `begin` or `finish` holds the stack's lock."""

    files: StackFiles
    salt: str | None
    save_salt: Callable[[str], None]
    _base: str = ""

    def open(self, *, fold: bool) -> Opened:
        """The state with a crashed run's journal applied; `fold` also puts that into the checkpoint.

        Without `fold` no lock is needed: a run that ends in between is seen either before or after.
        """
        for _ in range(0 if fold else _ATTEMPTS):
            with contextlib.suppress(FileNotFoundError, Conflict):
                return self._open(fold=False)
        return self._open(fold=fold)

    def _open(self, *, fold: bool) -> Opened:
        deployment, raw = read_checkpoint(self.files)
        opened = open_deployment(deployment, self.salt, self.save_salt)
        self._base = fingerprint(raw)
        if self.files.journal.exists():
            opened = self._replayed(opened, fold=fold)
        return opened

    def begin(self, opened: Opened) -> Journal:
        """Starts the journal of a run. Its secrets are encrypted as in the checkpoint."""
        ensure_layout(self.files)
        return Journal(self.files.journal, self._base, opened.passphrase.hide)

    def finish(self, journal: Journal | None, opened: Opened) -> None:
        """Folds the run into the checkpoint and removes its journal."""
        content = encode_checkpoint(self.files, to_deployment(opened.snapshot, opened.passphrase, opened.metadata))
        reached("engine.checkpoint.begin")
        if journal is not None:
            journal.folded(fingerprint(content))
            journal.close()
        write_checkpoint(self.files, content)
        reached("engine.checkpoint.written")
        self.files.journal.unlink(missing_ok=True)
        sync_folder(self.files.journal.parent)

    def export(self) -> dict[str, Any]:
        opened = self.open(fold=False)
        deployment, _ = read_checkpoint(self.files)
        if deployment is None or self.files.journal.exists():
            deployment = to_deployment(opened.snapshot, opened.passphrase, opened.metadata)
        return {"version": 3, "deployment": deployment}

    def record(self, *, kind: str, started: float, succeeded: bool, changes: dict[str, int], config: Any) -> None:
        add_history(
            self.files,
            kind=kind,
            started=started or time.time(),
            succeeded=succeeded,
            changes=changes,
            config=config,
        )

    def _replayed(self, opened: Opened, *, fold: bool) -> Opened:
        base, entries, folded = read_journal(self.files.journal, opened.passphrase.reveal)
        if not base or folded == self._base:  # nothing in it yet, or all of it in the checkpoint already
            if fold:
                self.files.journal.unlink()
            return opened
        if base != self._base:
            if not any(isinstance(entry, Begin) for entry in entries):
                if fold:
                    self.files.journal.unlink()
                return opened
            raise Conflict(
                "the checkpoint was changed after a run of this engine was killed, before its journal was taken over",
                where=self.files.journal,
                remedy="restore the checkpoint's .bak, or move the journal away and import what it names",
            )
        for entry in entries:
            opened.snapshot.apply(entry)
        if not fold:
            replayed = Snapshot(in_dependency_order(opened.snapshot.resources()), opened.snapshot.pending())
            return replace(opened, snapshot=replayed)
        content = encode_checkpoint(self.files, to_deployment(opened.snapshot, opened.passphrase, opened.metadata))
        write_checkpoint(self.files, content)
        self.files.journal.unlink()
        sync_folder(self.files.journal.parent)
        deployment, raw = read_checkpoint(self.files)
        self._base = fingerprint(raw)
        return open_deployment(deployment, self.salt or opened.passphrase.salt, self.save_salt)
