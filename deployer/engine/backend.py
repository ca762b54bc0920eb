"""Pulumi's file backend: where a stack's checkpoint, history, backups and locks are, and how they are written.

The layout is the CLI's (version 1, by project): `.pulumi/meta.yaml`, `.pulumi/stacks/PROJECT/STACK.json`,
`.pulumi/history/PROJECT/STACK/…`, `.pulumi/locks/organization/PROJECT/STACK/UUID.json`. Beside the checkpoint lies
`STACK.journal` while this engine's run is under way, or after one was killed (see `deployer.engine.journal`).
"""

from __future__ import annotations

import json
import os
import shutil
import time
import urllib.parse
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deployer.engine.project import Project, StackRef
from deployer.errors import Corrupt, Refused


@dataclass(frozen=True)
class StackFiles:
    """The files of one stack in a file backend."""

    root: Path  #: the backend's `.pulumi`
    project: str
    stack: str

    @property
    def checkpoint(self) -> Path:
        return self.root / "stacks" / self.project / f"{self.stack}.json"

    @property
    def journal(self) -> Path:
        return self.root / "stacks" / self.project / f"{self.stack}.journal"

    @property
    def history(self) -> Path:
        return self.root / "history" / self.project / self.stack

    @property
    def locks(self) -> Path:
        return self.root / "locks" / "organization" / self.project / self.stack

    @property
    def own_locks(self) -> Path:
        """Locks of deployer's own, where Pulumi does not look: its organization is always `organization`."""
        return self.root / "locks" / "deployer" / self.project / self.stack


def stack_files(stack: StackRef) -> StackFiles:
    return StackFiles(backend_root(stack.project), stack.project.name, stack.name)


def backend_root(project: Project) -> Path:
    """The `.pulumi` folder of a `file://` backend; relative paths count from the project's folder."""
    url = project.backend_url
    if not url.startswith("file://"):
        scheme = url.partition("://")[0]
        raise Refused(
            f"the embedded engine keeps state in files, not at {scheme}://…",
            where="Pulumi.yaml",
            remedy="install the Pulumi CLI (`pulumi`), which is then used, or set `backend: {url: file://.}`",
        )
    text = urllib.parse.unquote(url.removeprefix("file://").partition("?")[0]) or "."
    return (project.dir / Path(text).expanduser()).resolve() / ".pulumi"


def read_checkpoint(files: StackFiles) -> tuple[dict[str, Any] | None, bytes]:
    """The deployment (version 3) and the bytes of its file; `(None, b"")` for a stack without state."""
    path = files.checkpoint
    for suffix in (".gz", ".zst"):
        if path.with_name(path.name + suffix).exists():
            raise Refused(
                "the checkpoint is compressed", where=f"{path}{suffix}", remedy="use the Pulumi CLI, or unpack the file"
            )
    meta = files.root / "meta.yaml"
    if not meta.exists() and (files.root / "stacks" / f"{files.stack}.json").exists():
        raise Refused(
            "the backend has Pulumi's old layout without projects",
            where=files.root,
            remedy="run `pulumi state upgrade`",
        )
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return None, b""
    try:
        doc = json.loads(raw)
        version, checkpoint = int(doc["version"]), doc["checkpoint"]
    except (ValueError, KeyError, TypeError):
        raise Corrupt("not a Pulumi checkpoint", where=path, remedy=f"restore {path.name}.bak beside it") from None
    if version != 3:
        raise Refused(
            f"the checkpoint has version {version}, this engine reads 3", where=path, remedy="use the Pulumi CLI"
        )
    return checkpoint.get("latest"), raw


def encode_checkpoint(files: StackFiles, deployment: dict[str, Any]) -> bytes:
    """The checkpoint file's content, compact as the CLI writes it."""
    checkpoint = {"stack": f"organization/{files.project}/{files.stack}", "latest": deployment}
    text = json.dumps({"version": 3, "checkpoint": checkpoint}, separators=(",", ":"), ensure_ascii=False)
    return text.encode()


def write_checkpoint(files: StackFiles, content: bytes) -> None:
    """Replaces the checkpoint in one step, and keeps the one before it as `.bak`."""
    ensure_layout(files)
    if files.checkpoint.exists():
        shutil.copyfile(files.checkpoint, files.checkpoint.with_name(files.checkpoint.name + ".bak"))
    replace_file(files.checkpoint, content)


def ensure_layout(files: StackFiles) -> None:
    meta = files.root / "meta.yaml"
    files.checkpoint.parent.mkdir(parents=True, exist_ok=True)
    if not meta.exists():
        replace_file(meta, b"version: 1\n")


def replace_file(path: Path, content: bytes) -> None:
    """Writes a file so that a crash leaves either the old or the new one, whole."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Makes the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def add_history(
    files: StackFiles, *, kind: str, started: float, succeeded: bool, changes: dict[str, int], config: dict[str, Any]
) -> None:
    """Records a finished run as the CLI does: what it was, and a copy of the checkpoint it left."""
    files.history.mkdir(parents=True, exist_ok=True)
    stem = files.history / f"{files.stack}-{time.time_ns()}"
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
    Path(f"{stem}.history.json").write_text(json.dumps(entry, separators=(",", ":")), encoding="utf-8")
    if files.checkpoint.exists():
        shutil.copyfile(files.checkpoint, f"{stem}.checkpoint.json")
