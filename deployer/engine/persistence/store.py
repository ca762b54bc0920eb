"""A stack's state through one run: opened, journaled, folded into the checkpoint.

Whenever no run is active the checkpoint alone is the truth. A journal that lies there without a run was left by a
kill: the next run folds it into the checkpoint before anything else, and `export` and previews read through it.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from deployer.engine.persistence.backend import (
    Checkpoint,
    StackFiles,
    add_history,
    encode_checkpoint,
    read_checkpoint,
    write_checkpoint,
)
from deployer.engine.persistence.deployment import Opened, open_deployment, to_deployment
from deployer.engine.persistence.journal import Journal, fingerprint, read_journal, replay
from deployer.engine.persistence.journal_parts import JournalParts
from deployer.engine.project.project import StackRef
from deployer.engine.secrets.encryption import Secrets, StackKeys
from deployer.engine.values.snapshot import Begin, Snapshot, in_dependency_order
from deployer.errors import Conflict, DeployerError, EngineFailed
from deployer.platform.files.private import write_private
from deployer.platform.storage.objects import Missing
from deployer.platform.system.failpoints import reached

_ATTEMPTS = 3


@dataclass
class StackStore:
    """Reads and writes one stack. The caller of `open(fold=True)`, `begin`, `finish` or `restore` holds its lock.

    Only what is opened to be changed (`fold`) is decrypted.
    """

    files: StackFiles
    keys: StackKeys
    _read: Checkpoint = field(default_factory=lambda: Checkpoint(None))
    _journal: JournalParts = field(init=False)

    def __post_init__(self) -> None:
        self._journal = self.files.journal

    def open(self, *, fold: bool) -> Opened:
        """Returns the state with a crashed run's journal applied; `fold` also puts that into the checkpoint.

        Without `fold` no lock is needed: a run that ends in between is seen either before or after.
        """
        return self._open(fold=True) if fold else self._look(sealed=True)

    def _look(self, *, sealed: bool) -> Opened:
        for _ in range(_ATTEMPTS):
            with contextlib.suppress(Missing, Conflict):
                return self._open(fold=False, sealed=sealed)
        return self._open(fold=False, sealed=sealed)

    def _open(self, *, fold: bool, sealed: bool = False) -> Opened:
        self._read = read_checkpoint(self.files)
        opened = open_deployment(self._read.deployment, self.keys, sealed=sealed)
        return self._replayed(opened, fold=fold)

    def begin(self, opened: Opened) -> Journal:
        """Returns the journal of a run. Its secrets are encrypted as in the checkpoint."""
        return Journal(self._journal, fingerprint(self._read.raw), opened.secrets.hide)

    def finish(self, journal: Journal, opened: Opened) -> None:
        """Folds the run into the checkpoint and removes its journal."""
        content = encode_checkpoint(self.files, to_deployment(opened.snapshot, opened.secrets, opened.metadata))
        reached("engine.checkpoint.begin")
        journal.folded(fingerprint(content))
        self._read = write_checkpoint(self.files, content, self._read)
        reached("engine.checkpoint.written")
        if journal.is_written:
            self._journal.remove()

    def export(self) -> dict[str, Any]:
        opened = self.open(fold=False)
        deployment = self._read.deployment
        if deployment is None or self._journal.exists():
            if opened.secrets.is_moved:  # the journal's secrets have another key than the checkpoint's
                opened = self._look(sealed=False)
            deployment = to_deployment(opened.snapshot, opened.secrets, opened.metadata)
        return {"version": 3, "deployment": deployment}

    def restore(self, deployment: Mapping[str, Any]) -> None:
        """Puts a deployment in place of the stack's state, of which a `.bak` is kept; a killed run's journal goes."""
        self._read = read_checkpoint(self.files)
        write_checkpoint(self.files, encode_checkpoint(self.files, dict(deployment)), self._read)
        self._journal.remove()

    def rekey(self, opened: Opened, secrets: Secrets) -> None:
        """Puts what was opened in place of the checkpoint, if there is one, its secrets encrypted with another key.

        Of the checkpoint before a `.bak` is kept, whose secrets have the former key.
        """
        if self._read.deployment is not None:
            deployment = to_deployment(opened.snapshot, secrets, opened.metadata)
            self._read = write_checkpoint(self.files, encode_checkpoint(self.files, deployment), self._read)

    def record(self, *, kind: str, started: float, succeeded: bool, changes: dict[str, int], config: Any) -> None:
        add_history(
            self.files,
            self._read.raw,
            kind=kind,
            started=started or time.time(),
            succeeded=succeeded,
            changes=changes,
            config=config,
        )

    def _replayed(self, opened: Opened, *, fold: bool) -> Opened:
        found = read_journal(self._journal, opened.secrets.reveal)
        if found is None:
            if fold:
                self._journal.remove()  # what a removal that was interrupted may have left
            return opened
        base, entries, folded = found
        read = fingerprint(self._read.raw)
        if not base or folded == read:  # nothing in it yet, or all of it in the checkpoint already
            if fold:
                self._journal.remove()
            return opened
        if base != read:
            if not any(isinstance(entry, Begin) for entry in entries):
                if fold:
                    self._journal.remove()
                return opened
            raise Conflict(
                "the checkpoint was changed after a run of this engine was killed, before the journal was folded in",
                where=self._journal.where,
                remedy="restore the checkpoint's .bak, or move the journal away and import what it names",
            )
        replay(entries, opened.snapshot, self._journal.where)
        if not fold:
            replayed = Snapshot(in_dependency_order(opened.snapshot.resources()), opened.snapshot.pending())
            return replace(opened, snapshot=replayed)
        content = encode_checkpoint(self.files, to_deployment(opened.snapshot, opened.secrets, opened.metadata))
        self._read = write_checkpoint(self.files, content, self._read)
        self._journal.remove()
        return open_deployment(
            self._read.deployment, replace(self.keys, configured=self.keys.configured or opened.secrets.keeper)
        )


@contextlib.contextmanager
def saved_or_kept(stack: StackRef, opened: Opened, failure: BaseException | None, *, changed: bool) -> Iterator[None]:
    """Around the saving of a run's state. When that fails, the state goes into a file, and the error names it.

    `failure` is what ended the run before, which the error says too; a run that `changed` nothing has no more to say.
    Secrets are as encrypted as they are in the state.
    """
    try:
        yield
    except DeployerError as error:
        if not changed:
            if failure is None:
                raise
            return
        file = stack.project.dir / f"{stack.project.name}.{stack.name}.unsaved.json"
        deployment = to_deployment(opened.snapshot, opened.secrets, opened.metadata)
        write_private(file, json.dumps({"version": 3, "deployment": deployment}))
        before = f"{failure}; then " if isinstance(failure, DeployerError) and failure is not error else ""
        raise EngineFailed(
            f"{before}the state could not be saved: {error.what}; it is kept in {file.name}",
            where=error.where,
            remedy=f"{error.remedy or 'fix the cause'}; then run `deployer stack import {file.name} "
            f"--stack {stack.name}`, and `deployer up` to resume",
        ) from error
