"""The journal of a run: one line for each begin and end of a step, durable before the step continues. During a run it
is beside the checkpoint, as `STACK.journal` (see `deployer.engine.persistence.journal_parts`). At the end of the run it
is merged into the checkpoint and removed. So the checkpoint is complete whenever nothing runs, and the official CLI can
continue from it. After a kill the next run of this engine merges the journal first; steps without an end become the
checkpoint's pending operations.

A line is the CRC-32 of its JSON in eight hex digits, a space, the JSON. The first line holds the SHA-256 of the
checkpoint that the run started from; a journal of another checkpoint is never applied. A crash may leave an incomplete
last line, whose entry nothing relies on yet: it is dropped. A broken line before the last one is corruption.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from deployer.engine.persistence.journal_parts import JournalParts
from deployer.engine.values.checkpoint_shape import fault_of_resource
from deployer.engine.values.resource import ResourceState, Transform, from_json, to_json
from deployer.engine.values.snapshot import Begin, End, Entry, Pending, Snapshot
from deployer.errors import Corrupt, DeployerError
from deployer.platform.files.json_documents import NotADocument, read_document

_VERSION = 1
_KEY = re.compile(r"[bn][0-9]{1,9}")  #: of a resource in a snapshot


def fingerprint(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class Journal:
    """Appends entries.

    After `sync` they are durable; threads that wait together share one write. Nothing is written before the first
    `sync`: a run that changes nothing has no journal. After a failed write, every later write fails in the same way, so
    that there is never a gap.
    """

    def __init__(self, parts: JournalParts, base: str, hide: Transform) -> None:
        self._parts, self._hide = parts, hide
        self._lines: list[bytes] = []
        self._added = self._synced = 0
        self._failure: DeployerError | None = None
        self._add_lock, self._sync_lock = threading.Lock(), threading.Lock()
        self._add({"journal": _VERSION, "base": base})

    @property
    def is_written(self) -> bool:
        """Returns whether a part of the journal may be in the backend."""
        return self._synced > 0 or self._failure is not None

    def append(self, entry: Entry) -> int:
        """Appends one entry, and returns its number for `sync`. Entries are applied in the order in which they are
        appended."""
        return self._add(_encode(entry, self._hide))

    def sync(self, number: int) -> None:
        """Waits until the entry of that number, and all before it, are durable. Raises what the backend raises."""
        with self._sync_lock:
            if self._failure is not None:
                raise self._failure
            if self._synced >= number:
                return
            with self._add_lock:
                lines, self._lines, added = self._lines, [], self._added
            try:
                self._parts.append(b"".join(lines))
            except DeployerError as error:
                self._failure = error
                raise
            self._synced = added

    def folded(self, result: str) -> None:
        """Records the checkpoint that this journal was merged into, before that checkpoint is written."""
        if self.is_written:
            self.sync(self._add({"folded": result}))

    def _add(self, doc: dict[str, Any]) -> int:
        text = json.dumps(doc, separators=(",", ":"))
        line = f"{zlib.crc32(text.encode()):08x} {text}\n".encode()
        with self._add_lock:
            self._lines.append(line)
            self._added += 1
            return self._added


def read_journal(parts: JournalParts, reveal: Transform) -> tuple[str, list[Entry], str | None] | None:
    """Returns `(fingerprint of the checkpoint it starts from, entries, fingerprint it was merged into or None)`.

    Returns None when there is no journal; the fingerprint is empty when the journal is empty.
    """
    content = parts.read()
    if content is None:
        return None
    docs = list(_documents(content, parts.where))
    if not docs:
        return "", [], None
    if docs[0].get("journal") != _VERSION or not isinstance(docs[0].get("base"), str):
        raise Corrupt(
            "not a journal that this version reads", where=parts.where, remedy="use the version that wrote it"
        )
    for number, doc in enumerate(docs[1:], 2):
        if (fault := _fault(doc)) is not None:
            raise _corrupt(f"line {number} of the journal is not an entry: {fault}", parts.where)
    folded = next((doc["folded"] for doc in docs if "folded" in doc), None)
    entries = [_decode(doc, reveal) for doc in docs[1:] if "folded" not in doc]
    return docs[0]["base"], entries, folded


def replay(entries: Iterable[Entry], snapshot: Snapshot, where: str) -> None:
    """Applies the entries of a journal. Raises Corrupt, naming the journal, for an entry that does not fit."""
    for entry in entries:
        try:
            snapshot.apply(entry)
        except Corrupt as error:
            raise _corrupt(f"the journal does not fit the checkpoint: {error.what}", where) from None


def _documents(content: bytes, where: str) -> Iterable[dict[str, Any]]:
    lines = content.split(b"\n")
    for number, line in enumerate(lines, 1):
        checksum, _, text = line.partition(b" ")
        if len(checksum) != 8 or f"{zlib.crc32(text):08x}".encode() != checksum:
            if number == len(lines):  # text after the last newline: nothing, or an entry that a crash interrupted
                return
            raise _corrupt(f"line {number} of the journal fails its checksum", where)
        try:
            document = read_document(text)
        except NotADocument as error:
            raise _corrupt(f"line {number} of the journal is not an entry: {error}", where) from None
        if not isinstance(document, dict):
            raise _corrupt(f"line {number} of the journal is not an entry", where)
        yield document


def _corrupt(what: str, where: str) -> Corrupt:
    remedy = "move the journal away and run `deployer refresh`; steps after that line are not in the state"
    return Corrupt(what, where=where, remedy=remedy)


def _fault(doc: Mapping[str, Any]) -> str | None:
    """Returns why a document after the first is not an entry; None where it is one."""
    resources: list[Any]
    match doc:
        case {"folded": str()}:
            return None
        case {"begin": int(), "kind": "creating" | "updating" | "deleting" | "reading", "resource": resource}:
            resources = [resource]
        case {"end": int() | None}:
            put, drop, resolves = doc.get("put", {}), doc.get("drop", []), doc.get("resolves", [])
            if not isinstance(put, dict) or not isinstance(drop, list) or not isinstance(resolves, list):
                return "it does not have the shape of a step's end"
            keys = [*put, *drop, *([doc["keep"]] if "keep" in doc else [])]
            if not all(isinstance(key, str) and _KEY.fullmatch(key) for key in keys):
                return "it names a resource by an invalid key"
            if not all(isinstance(position, int) for position in resolves):
                return "it resolves an invalid position"
            resources = [*put.values(), *([doc["add"]] if "add" in doc else [])]
        case _:
            return "it is neither the beginning nor the end of a step"
    return next((fault for each in resources if (fault := fault_of_resource(each)) is not None), None)


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
