"""Export of a whole state store to a ZIP archive that any tool can open (docs/state-format.md), and import from it.

`manifest.json` lists every other member of the archive with its checksum. Each log has `LOG/entries.jsonl`, with the
JSON of one entry on each line, and the files of its snapshots as they are stored.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deployer.errors import Corrupt, InvalidInput, OutcomeUnknown, Refused
from deployer.platform.files.archives import member_digest, open_archive
from deployer.platform.files.json_documents import format_of, read_document
from deployer.platform.files.private import replacing
from deployer.platform.storage.envelope import DIGEST_BYTES, digest, seal, unseal
from deployer.platform.storage.objects import Missing, ObjectReader, ObjectStore
from deployer.platform.system.progress import OnProgress, counted, no_progress
from deployer.state.audit.logs import described
from deployer.state.backends.protocol import Backend, LogReader, Record, SnapshotRecord, Tail
from deployer.state.log.entries import from_record
from deployer.state.model.entities import INSTANCE_LOG
from deployer.state.snapshots.files import manifest_of
from deployer.state.transfer.export_shape import MANIFEST, fault_of_entries, fault_of_export, files_of

EXPORT_FORMAT = 1  #: raised when an older reader would read an export wrongly
_KIND = "deployer-state-export"
_ANOTHER = "use another copy of the export"
_ATTEMPTS = 5
#: The errors that Python's ZIP and compression modules raise for invalid bytes.
_UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    NotImplementedError,
    RuntimeError,
    EOFError,
    OSError,
    KeyError,
    ValueError,
)


@dataclass(frozen=True, slots=True)
class Export:
    """The content of an export: the newest version of each log by name, and the numbers of entries and snapshots."""

    logs: Mapping[str, int]
    entries: int
    snapshots: int


@dataclass(frozen=True, slots=True)
class _Log:
    """A log at the moment of the export: its newest version, its kept records and pointers, and the files of its
    snapshots."""

    version: int
    records: Sequence[Record]
    pointers: Sequence[SnapshotRecord]
    files: Mapping[str, bytes]


def export_store(
    path: Path, reader: LogReader, objects: ObjectReader, now: int, on_progress: OnProgress = no_progress
) -> Export:
    """Writes all logs as of one moment to `path`. `now` is the time in ms.

    Raises Corrupt, and leaves no file, when stored data is damaged, and OutcomeUnknown when data is removed faster than
    it can be read.
    """
    names = list(reader.logs())
    newest = {log: _newest(tail) for log, tail in reader.tails(dict.fromkeys(names, 0)).items() if not tail.removed}
    digests: dict[str, str] = {}
    logs: dict[str, dict[str, Any]] = {}
    entries = snapshots = 0
    with replacing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:

        def add(name: str, data: bytes) -> None:
            archive.writestr(name, data)
            digests[name] = digest(data).hex()

        for log, version in counted(sorted(newest.items()), len(newest), "writing", "logs", on_progress):
            held = _read(log, version, reader, objects)
            entries, snapshots = entries + len(held.records), snapshots + len(held.pointers)
            lines = [unseal(record.body, f"entry {record.version} of log {log}") for record in held.records]
            add(f"{log}/entries.jsonl", b"".join(line + b"\n" for line in lines))
            for name, data in held.files.items():
                add(name, data)
            logs[log] = {"version": version, "snapshots": [described(each) for each in held.pointers]}
        manifest = {"kind": _KIND, "format": EXPORT_FORMAT, "at": now, "logs": logs, "digests": digests}
        archive.writestr(MANIFEST, json.dumps(manifest, indent=1))
    return Export(newest, entries, snapshots)


def _newest(tail: Tail) -> int:
    return tail.records[-1].version if tail.records else tail.snapshot_version


def _read(log: str, version: int, reader: LogReader, objects: ObjectReader) -> _Log:
    for _ in range(_ATTEMPTS):
        pointers = [each for each in reader.snapshots(log) if each.version <= version]
        first = pointers[0].version if pointers else 0
        records = reader.records(log, 0)
        kept = [record for record in records if record.version <= version]
        for record in kept:
            from_record(record)  # raises Corrupt for a damaged one
        try:
            files = {path: objects.get(path) for pointer in pointers for path in files_of(manifest_of(pointer))}
        except Missing as missing:
            if reader.snapshots(log)[:1] == pointers[:1]:
                raise Corrupt(f"{missing} is missing", where=f"log {log}", remedy="deployer state repair") from None
            continue  # retention removed the snapshot meanwhile, because a newer one exists
        start = kept[0].version if kept else version + 1
        if [each.version for each in kept] == list(range(start, version + 1)) and start <= first + 1:
            _check_parts(pointers, files)
            return _Log(version, kept, pointers, files)
        if records and records[0].version > first + 1:
            continue
        raise Corrupt("entries are missing", where=f"log {log}", remedy="deployer state verify")
    raise OutcomeUnknown("it is removed faster than it can be read", where=f"log {log}", remedy="try again")


def _check_parts(pointers: Sequence[SnapshotRecord], files: Mapping[str, bytes]) -> None:
    for pointer in pointers:
        manifest = manifest_of(pointer)
        for name, part in manifest["parts"].items():
            path = f"{manifest['location']}/{name}.parquet"
            if digest(files[path]).hex() != part["digest"]:
                where = f"snapshot {pointer.version} of log {pointer.log}"
                raise Corrupt(f"the checksum of {path} does not match", where=where, remedy="deployer state repair")


def read_export(path: Path) -> tuple[zipfile.ZipFile, Mapping[str, Any]]:
    """Returns the open archive and its manifest, after checking every member.

    Raises InvalidInput for a file that is not an export, Refused for a newer format, and Corrupt for a damaged export.
    """
    try:
        archive = open_archive(path)
        manifest = read_document(archive.read(MANIFEST))
    except FileNotFoundError:
        raise InvalidInput("no such file", where=path) from None
    except _UNREADABLE as error:
        raise InvalidInput(f"it is not a valid export of a state store: {error}", where=path) from None
    number = format_of(manifest)
    if number is None or manifest.get("kind") != _KIND:
        raise InvalidInput("it is not a valid export of a state store", where=path)
    if number > EXPORT_FORMAT:
        raise Refused(
            f"written by a newer deployer (format {number}), this one reads up to {EXPORT_FORMAT}",
            where=path,
            remedy="upgrade",
        )
    if (fault := fault_of_export(manifest, archive.namelist())) is not None:
        raise Corrupt(fault, where=path, remedy=_ANOTHER)
    for name, expected in manifest["digests"].items():
        try:
            whole = member_digest(archive, name, DIGEST_BYTES).hex() == expected
        except _UNREADABLE:
            whole = False
        if not whole:
            raise Corrupt(f"the checksum of {name} does not match", where=path, remedy=_ANOTHER)
    for log, each in manifest["logs"].items():
        lines = archive.read(f"{log}/entries.jsonl").splitlines()
        try:
            fault = fault_of_entries(log, each, lines)
        except Refused as error:
            raise Refused(error.what, where=path, remedy=error.remedy) from None
        if fault is not None:
            raise Corrupt(fault, where=path, remedy=_ANOTHER)
    return archive, manifest


def import_store(path: Path, backend: Backend, objects: ObjectStore) -> Export:
    """Fills an empty store from an export. The log of the instance comes last, so that the store has no tables before
    it is complete.

    Raises as `read_export` does, before anything is written, and InvalidInput for a log that is not empty.
    """
    archive, manifest = read_export(path)
    entries = pointers = 0
    with archive:
        logs: Mapping[str, Any] = manifest["logs"]
        for log in sorted(logs, key=lambda name: (name == INSTANCE_LOG, name)):
            described = logs[log]["snapshots"]
            lines = archive.read(f"{log}/entries.jsonl").splitlines()
            documents = [json.loads(line) for line in lines]
            records = [
                Record(log, document["version"], document["txn_id"], seal(line))
                for document, line in zip(documents, lines, strict=True)
            ]
            first = records[0].version if records else logs[log]["version"] + 1
            if first > 1 and not backend.begin_at(log, first - 1):
                raise InvalidInput(f"log {log} is not empty", where=path, remedy="import into an empty root")
            below = [each for each in described if each["version"] < first]
            pointers += _add_snapshots(archive, below, backend, objects)
            if first > 1:
                backend.truncate(log, first - 1)
            for record in records:
                if not backend.put([record]) and backend.find(log, record.txn_id) != record.version:
                    raise InvalidInput(f"log {log} is not empty", where=path, remedy="use an empty root")
            pointers += _add_snapshots(archive, described[len(below) :], backend, objects)
            entries += len(records)
    backend.flush()
    return Export({log: each["version"] for log, each in logs.items()}, entries, pointers)


def _add_snapshots(
    archive: zipfile.ZipFile, manifests: Sequence[Mapping[str, Any]], backend: Backend, objects: ObjectStore
) -> int:
    for manifest in manifests:
        for name in files_of(manifest):
            objects.put(name, archive.read(name))
        body = seal(json.dumps(manifest).encode())
        backend.add_snapshot(SnapshotRecord(manifest["log"], manifest["version"], manifest["at"], body))
    return len(manifests)
