"""The journal of a run: one line a begin and end of a step, on disk before the step goes on.

It lies beside the checkpoint, as `STACK.journal`, while a run is under way. At the end of the run it is folded into
the checkpoint and removed, so that the checkpoint alone is the truth whenever nothing runs, and the official CLI can
go on from it. After a kill the next run of this engine folds it first; steps that were begun and not ended become
the checkpoint's pending operations.

A line is the CRC-32 of its JSON in eight hex digits, a space, the JSON. The first line holds the SHA-256 of the
checkpoint that the run started from; a journal of another checkpoint is never applied. A torn last line is what a
crash leaves of an entry that nobody relied on yet, and is dropped; a broken line before it is corruption.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from deployer.engine.backend import sync_folder
from deployer.engine.resource import ResourceState, Transform, from_json, to_json
from deployer.engine.snapshot import Begin, End, Entry, Pending
from deployer.errors import Corrupt

_VERSION = 1


def fingerprint(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class Journal:
    """Appends entries. After `sync` they are on disk; threads that wait together share one sync."""

    def __init__(self, path: Path, base: str, hide: Transform) -> None:
        self._hide = hide
        self._path = path
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        self._write_lock, self._sync_lock = threading.Lock(), threading.Lock()
        self._written = self._synced = 0
        self._append({"journal": _VERSION, "base": base})
        os.fsync(self._file)
        sync_folder(path.parent)

    def append(self, entry: Entry) -> int:
        """Appends one entry, and returns its number for `sync`. Entries are applied in the order they have here."""
        return self._append(_encode(entry, self._hide))

    def sync(self, number: int) -> None:
        """Returns when the entry of that number, and all before it, are on disk."""
        with self._sync_lock:
            if self._synced >= number:
                return
            reached = self._written
            os.fsync(self._file)
            self._synced = reached

    def folded(self, result: str) -> None:
        """Says which checkpoint this journal was folded into, before that one is put in place."""
        self._append({"folded": result})
        os.fsync(self._file)

    def close(self) -> None:
        os.close(self._file)

    def _append(self, doc: dict[str, Any]) -> int:
        text = json.dumps(doc, separators=(",", ":"))
        line = f"{zlib.crc32(text.encode()):08x} {text}\n".encode()
        with self._write_lock:
            os.write(self._file, line)
            self._written += 1
            return self._written


def read_journal(path: Path, reveal: Transform) -> tuple[str, list[Entry], str | None]:
    """`(fingerprint of the checkpoint it starts from, entries, fingerprint it was folded into or None)`."""
    docs = list(_documents(path))
    if not docs:
        return "", [], None
    if docs[0].get("journal") != _VERSION:
        raise Corrupt("not a journal that this version reads", where=path, remedy="use the version that wrote it")
    folded = next((doc["folded"] for doc in docs if "folded" in doc), None)
    entries = [_decode(doc, reveal) for doc in docs[1:] if "folded" not in doc]
    return str(docs[0]["base"]), entries, folded


def _documents(path: Path) -> Iterable[dict[str, Any]]:
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, 1):
        checksum, _, text = line.partition(b" ")
        if len(checksum) != 8 or f"{zlib.crc32(text):08x}".encode() != checksum:
            if number == len(lines):  # what follows the last newline: nothing, or an entry cut short by a crash
                return
            raise Corrupt(
                f"line {number} of the journal fails its checksum",
                where=path,
                remedy="move the journal away and run `deployer refresh`; steps after that line are not in the state",
            )
        yield json.loads(text)


def _encode(entry: Entry, hide: Transform) -> dict[str, Any]:
    if isinstance(entry, Begin):
        return {"begin": entry.step, "kind": entry.pending.kind, "resource": to_json(entry.pending.resource, hide)}
    doc: dict[str, Any] = {"end": entry.step}
    if entry.add is not None:
        doc["add"] = to_json(entry.add, hide)
    if entry.drop:
        doc["drop"] = list(entry.drop)
    if entry.put:
        doc["put"] = {key: to_json(state, hide) for key, state in entry.put.items()}
    if entry.resolves:
        doc["resolves"] = list(entry.resolves)
    if entry.keep:
        doc["keep"] = entry.keep
    return doc


def _decode(doc: dict[str, Any], reveal: Transform) -> Entry:
    read: Callable[[dict[str, Any]], ResourceState] = lambda stored: from_json(stored, reveal)  # noqa: E731
    if "begin" in doc:
        return Begin(int(doc["begin"]), Pending(doc["kind"], read(doc["resource"])))
    return End(
        step=doc["end"],
        add=read(doc["add"]) if "add" in doc else None,
        drop=tuple(doc.get("drop", ())),
        put={key: read(state) for key, state in doc.get("put", {}).items()},
        resolves=tuple(doc.get("resolves", ())),
        keep=doc.get("keep", ""),
    )
