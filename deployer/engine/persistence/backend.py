"""Pulumi's own backend: the places of a stack's checkpoint, history, backups and locks, and how they are written.

The layout is the CLI's (version 1, by project): `.pulumi/meta.yaml`, `.pulumi/stacks/PROJECT/STACK.json`,
`.pulumi/history/PROJECT/STACK/…`, `.pulumi/locks/organization/PROJECT/STACK/UUID.json`; the same in a folder and in a
bucket. `STACK.journal` is beside the checkpoint while this engine is running, or after a run was killed (see
`deployer.engine.persistence.journal`).
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

from deployer.engine.persistence.journal_parts import JournalParts, parts_in
from deployer.engine.project.backend_url import Backend, open_backend
from deployer.engine.project.project import StackRef
from deployer.engine.values.checkpoint_shape import fault_of_deployment
from deployer.errors import Conflict, Corrupt, Refused
from deployer.platform.files.json_documents import NotADocument, read_document


@dataclass(frozen=True)
class StackFiles:
    """The paths of one stack in a backend."""

    backend: Backend
    project: str
    stack: str

    @property
    def checkpoint(self) -> str:
        return f"stacks/{self.project}/{self.stack}.json"

    @property
    def history(self) -> str:
        return f"history/{self.project}/{self.stack}"

    @property
    def locks(self) -> str:
        return f"locks/organization/{self.project}/{self.stack}"

    @property
    def own_locks(self) -> str:
        """The folder of deployer's own locks, which Pulumi does not read: Pulumi's organization is always
        `organization`."""
        return f"locks/deployer/{self.project}/{self.stack}"

    @property
    def journal(self) -> JournalParts:
        return parts_in(self.backend, f"stacks/{self.project}/{self.stack}.journal")

    @property
    def where(self) -> str:
        """The checkpoint's place, for messages."""
        return self.backend.where(self.checkpoint)

    def has_state(self) -> bool:
        """Returns whether a run ever began to store a state."""
        return self.backend.objects.tagged(self.checkpoint) is not None or self.journal.exists()


def stack_files(stack: StackRef) -> StackFiles:
    """Returns the stack's files. Raises Refused when this engine does not support the stack's backend."""
    return StackFiles(open_backend(stack.project), stack.project.name, stack.name)


@dataclass(frozen=True)
class Checkpoint:
    """The content of a stack's file: the deployment (version 3), the bytes, and their tag. Without a file these are
    None, no bytes and None."""

    deployment: dict[str, Any] | None
    raw: bytes = b""
    tag: str | None = None


def read_checkpoint(files: StackFiles) -> Checkpoint:
    """Returns the stack's checkpoint. Raises Corrupt and Refused for a checkpoint that cannot be read."""
    _refuse_other_forms(files)
    found = files.backend.objects.tagged(files.checkpoint)
    if found is None:
        return Checkpoint(None)
    raw, tag = found
    remedy = f"restore {files.stack}.json.bak beside it"
    try:
        doc = read_document(raw)
    except NotADocument as error:
        raise Corrupt(f"not a Pulumi checkpoint: {error}", where=files.where, remedy=remedy) from None
    version, checkpoint = (doc.get("version"), doc.get("checkpoint")) if isinstance(doc, dict) else (None, None)
    if not isinstance(version, int) or not isinstance(checkpoint, dict):
        raise Corrupt("not a Pulumi checkpoint", where=files.where, remedy=remedy)
    if version != 3:
        raise Refused(
            f"the checkpoint has version {version}, this engine reads 3", where=files.where, remedy="use the Pulumi CLI"
        )
    deployment = checkpoint.get("latest")
    if (fault := fault_of_deployment(deployment)) is not None:
        raise Corrupt(f"not a Pulumi checkpoint: {fault}", where=files.where, remedy=remedy)
    return Checkpoint(deployment, raw, tag)


def _refuse_other_forms(files: StackFiles) -> None:
    """Raises Refused where the stack exists in a form that this engine does not read."""
    objects = files.backend.objects
    there = objects.list(f"stacks/{files.project}")
    for suffix in (".gz", ".zst"):
        if files.checkpoint + suffix in there:
            raise Refused(
                "the checkpoint is compressed",
                where=f"{files.where}{suffix}",
                remedy="use the Pulumi CLI, or unpack the file",
            )
    if files.checkpoint in there:
        return
    if objects.tagged("meta.yaml") is None and objects.tagged(f"stacks/{files.stack}.json") is not None:
        raise Refused(
            "the backend has Pulumi's old layout without projects",
            where=files.backend.at,
            remedy="run `pulumi state upgrade`",
        )


def encode_checkpoint(files: StackFiles, deployment: dict[str, Any]) -> bytes:
    """Returns the checkpoint file's content, compact as the CLI writes it."""
    checkpoint = {"stack": f"organization/{files.project}/{files.stack}", "latest": deployment}
    text = json.dumps({"version": 3, "checkpoint": checkpoint}, separators=(",", ":"), ensure_ascii=False)
    return text.encode()


def write_checkpoint(files: StackFiles, content: bytes, before: Checkpoint) -> Checkpoint:
    """Replaces the checkpoint that was read by this content, in one step, and keeps the former one as `.bak`.

    Raises Conflict when another process has written since: the lock was broken, or not taken.
    """
    objects = files.backend.objects
    if before.tag is None:
        objects.replace("meta.yaml", b"version: 1\n", None)
    else:
        objects.put(f"{files.checkpoint}.bak", before.raw)
    tag = objects.replace(files.checkpoint, content, before.tag)
    if tag is None:
        raise Conflict(
            "another process changed the stack's state during this run, so this run's state is not saved",
            where=files.where,
            remedy="start a run only when no other run holds the stack",
        )
    return Checkpoint(json.loads(content)["checkpoint"]["latest"], content, tag)


def add_history(
    files: StackFiles,
    left: bytes,
    *,
    kind: str,
    started: float,
    succeeded: bool,
    changes: dict[str, int],
    config: dict[str, Any],
) -> None:
    """Records a finished run as the CLI does: its kind and result, and a copy of the resulting checkpoint."""
    stem = f"{files.history}/{files.stack}-{time.time_ns()}"
    entry: dict[str, Any] = {
        "kind": kind,
        "startTime": int(started),
        "message": "",
        "environment": {"exec.kind": "embedded"},
        "config": config,
        "version": 0,
        "result": "succeeded" if succeeded else "failed",
        "endTime": int(time.time()),
    }
    if changes:
        entry["resourceChanges"] = changes
    objects = files.backend.objects
    objects.put(f"{stem}.history.json", json.dumps(entry, separators=(",", ":")).encode())
    if left:
        objects.put(f"{stem}.checkpoint.json", left)
