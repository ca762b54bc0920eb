"""A stack's state during one run: it is opened, journaled, and merged into the checkpoint.

Whenever no run is active, the checkpoint is complete. A journal without a run was left by a kill: the next run merges
it into the checkpoint first, and `export` and previews apply it in memory.
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
from deployer.engine.persistence.deployment import OpenedDeployment, open_deployment, to_deployment
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
    """Reads and writes one stack.

    The caller of `open(fold=True)`, `begin`, `finish` or `restore` holds the stack's lock. Secrets are decrypted only
    when the state is opened for a change (`fold`).
    """

    files: StackFiles
    keys: StackKeys
    _read: Checkpoint = field(default_factory=lambda: Checkpoint(None))
    _journal: JournalParts = field(init=False)

    def __post_init__(self) -> None:
        self._journal = self.files.journal

    def open(self, *, fold: bool) -> OpenedDeployment:
        """Returns the state with a crashed run's journal applied; `fold` also writes that into the checkpoint.

        Without `fold` no lock is needed: the result is the state either before or after a concurrent run.
        """
        return self._open(fold=True) if fold else self._look(sealed=True)

    def _look(self, *, sealed: bool) -> OpenedDeployment:
        for _ in range(_ATTEMPTS):
            with contextlib.suppress(Missing, Conflict):
                return self._open(fold=False, sealed=sealed)
        return self._open(fold=False, sealed=sealed)

    def _open(self, *, fold: bool, sealed: bool = False) -> OpenedDeployment:
        self._read = read_checkpoint(self.files)
        opened = open_deployment(self._read.deployment, self.keys, sealed=sealed)
        return self._replayed(opened, fold=fold)

    def begin(self, opened: OpenedDeployment) -> Journal:
        """Returns the journal of a run. Its secrets are encrypted as in the checkpoint."""
        return Journal(self._journal, fingerprint(self._read.raw), opened.secrets.hide)

    def finish(self, journal: Journal, opened: OpenedDeployment) -> None:
        """Merges the run into the checkpoint and removes its journal."""
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
            if opened.secrets.is_moved:  # the journal's secrets have a different key than the checkpoint's
                opened = self._look(sealed=False)
            deployment = to_deployment(opened.snapshot, opened.secrets, opened.metadata)
        return {"version": 3, "deployment": deployment}

    def restore(self, deployment: Mapping[str, Any]) -> None:
        """Replaces the stack's state by a deployment, keeps the former state as `.bak`, and removes the journal of a
        killed run."""
        self._read = read_checkpoint(self.files)
        write_checkpoint(self.files, encode_checkpoint(self.files, dict(deployment)), self._read)
        self._journal.remove()

    def rekey(self, opened: OpenedDeployment, secrets: Secrets) -> None:
        """Writes the opened state as the checkpoint, if there is one, with its secrets encrypted by another key.

        Keeps the former checkpoint as `.bak`; its secrets have the former key.
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

    def _replayed(self, opened: OpenedDeployment, *, fold: bool) -> OpenedDeployment:
        found = read_journal(self._journal, opened.secrets.reveal)
        if found is None:
            if fold:
                self._journal.remove()  # an interrupted removal may have left it
            return opened
        base, entries, folded = found
        read = fingerprint(self._read.raw)
        if not base or folded == read:  # it is empty, or the checkpoint has all of it already
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
def saved_or_kept(
    stack: StackRef, opened: OpenedDeployment, failure: BaseException | None, *, changed: bool
) -> Iterator[None]:
    """Wraps saving a run's state.

    When saving fails, the state is written to a file, and the error names the file. The error also has `failure`, which
    ended the run before. For a run that has not `changed` anything, no file is written. Secrets are encrypted as in the
    state.
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
