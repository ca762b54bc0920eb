"""Reading and writing of snapshots. A snapshot is a folder of Parquet files that hold one state, and a pointer to it.

The pointer is in the backend. It contains the manifest, which lists the files with their checksums, so that a reader
finds them without reading another file. The folder has a copy of the manifest for people and for repairs.
"""

from __future__ import annotations

import base64
import io
import json
import logging
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from deployer.errors import Corrupt
from deployer.platform.storage.envelope import RECOVERY, digest, refuse_newer, seal, unseal
from deployer.platform.storage.objects import Missing, ObjectReader, ObjectStore
from deployer.platform.system.clock import Clock
from deployer.platform.system.failpoints import reached
from deployer.platform.text.visible import shortened
from deployer.state.backends.protocol import Backend, LogReader, SnapshotRecord
from deployer.state.log.cache import CachedState, grown, log_of
from deployer.state.log.entries import from_record
from deployer.state.log.reducer import empty_state
from deployer.state.model.entities import State
from deployer.state.model.names import is_log_name

if TYPE_CHECKING:
    import pyarrow as pa

SNAPSHOT_FORMAT = 6  #: the newest format that can be read; a snapshot is written in the lowest format that fits it

_LOG = logging.getLogger(__name__)

THREADS_ABOVE = 50_000  #: rows; a part with more rows is read by several threads


class SnapshotReader:
    """Read-only access to snapshots."""

    def __init__(self, logs: LogReader, objects: ObjectReader) -> None:
        self._logs, self._objects = logs, objects

    def load(self, pointer: SnapshotRecord) -> CachedState:
        """Returns the state of a snapshot. If it is damaged, the same state is made from an older snapshot and the log.

        Raises Corrupt, which names the damaged part, when the log no longer reaches back to an undamaged snapshot, and
        Missing when the snapshot was removed meanwhile.
        """
        try:
            return self.read(pointer)
        except (Corrupt, Missing) as error:
            pointers = self._logs.snapshots(pointer.log)
            if pointer.version not in [each.version for each in pointers]:
                raise Missing(pointer.log) from None
            damage = error if isinstance(error, Corrupt) else _damaged(pointer, f"{error} is missing")
        older = [each for each in pointers if each.version < pointer.version]
        base = self.load(older[-1]) if older else CachedState(empty_state(pointer.log))
        records = self._logs.records(pointer.log, base.state.version, pointer.version - base.state.version)
        if [record.version for record in records] != list(range(base.state.version + 1, pointer.version + 1)):
            raise damage
        known = grown(base, [(from_record(record), record) for record in records])
        _LOG.warning(
            "%s: %s; read from the log instead: `deployer state repair` makes it again", damage.where, damage.what
        )
        return known

    def read(self, pointer: SnapshotRecord) -> CachedState:
        """Returns the state of a snapshot.

        Raises Corrupt for a damaged snapshot, Missing for a file that does not exist, and Refused for a newer format.
        """
        import pyarrow as pa

        from deployer.state.snapshots.columns import from_parts

        manifest = manifest_of(pointer)
        try:
            parts = {name: self._part(pointer, manifest, name) for name in manifest["parts"]}
            state = from_parts(parts, pointer.version, pointer.at)
        except (KeyError, TypeError, ValueError, RecursionError, pa.ArrowException) as error:
            raise _damaged(pointer, f"it has an unexpected structure: {error!r}") from None
        if log_of(state) != pointer.log:
            raise _damaged(pointer, f"it holds the state of log {shortened(log_of(state))}")
        return CachedState(state, pointer.version, _size_of(manifest))

    def _part(self, pointer: SnapshotRecord, manifest: Mapping[str, Any], name: str) -> pa.Table:
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = f"{manifest['location']}/{name}.parquet"
        reached("snapshot:before-read")
        held = manifest["parts"][name].get("data")
        data = self._objects.get(path) if held is None else base64.b64decode(held)
        if digest(data).hex() != manifest["parts"][name]["digest"]:
            raise _damaged(pointer, f"the checksum of {path} does not match")
        file = pq.ParquetFile(pa.BufferReader(data))  # read_table() would import pandas
        # If a short command ends while Arrow still starts its threads, the process aborts, which is rare.
        return file.read(use_threads=file.metadata.num_rows > THREADS_ABOVE)


class SnapshotWriter:
    """The operations that take snapshots, rebuild damaged ones and remove their files."""

    def __init__(self, backend: Backend, objects: ObjectStore, clock: Clock, inline: int = 0) -> None:
        """Makes a writer whose pointers also contain the smallest parts, up to `inline` bytes in total.

        Readers get these parts in the request that reads the log.
        """
        self._backend, self._objects, self._clock, self._inline = backend, objects, clock, inline

    def take(self, state: State) -> CachedState | None:
        """Writes a snapshot and returns its state. Returns None when this version has a snapshot already, or the log
        was removed."""
        pointer, location, size = self._write(state)
        reached("snapshot:before-pointer")
        if not self._backend.add_snapshot(pointer):
            # The pointer was certainly not added, so no reader can know this folder.
            self.delete_folder(location)
            return None
        reached("snapshot:after-pointer")
        return CachedState(state, state.version, size)

    def remake(self, state: State) -> bool:
        """Writes the snapshot of this version again, into a new folder, and removes the old folder.

        Returns False when the version no longer has a snapshot.
        """
        pointer, location, _ = self._write(state)
        reached("snapshot:before-replacing")
        if not self._backend.replace_snapshot(pointer):
            self.delete_folder(location)
            return False
        reached("snapshot:after-replacing")
        old = {path.rpartition("/")[0] for path in self._objects.list(pointer.log) if path.count("/") > 1}
        for folder in old - {location}:
            if version_of(f"{folder}/") == state.version:
                self.delete_folder(folder)
        return True

    def _write(self, state: State) -> tuple[SnapshotRecord, str, int]:
        """Writes the files of a snapshot. Returns the pointer that will name them, their folder and their size in
        bytes."""
        import pyarrow.parquet as pq

        from deployer.state.snapshots.columns import format_of, to_parts

        log = log_of(state)
        location = _location(state, self._clock.new_id())
        tables = to_parts(state)
        format_ = format_of(tables)
        metadata = {"deployer.format": str(format_), "deployer.log": log, "deployer.version": str(state.version)}
        parts: dict[str, dict[str, Any]] = {}
        files: dict[str, bytes] = {}
        for name, table in tables.items():
            file = io.BytesIO()
            pq.write_table(table.replace_schema_metadata(metadata), file, compression="zstd")
            data = file.getvalue()
            reached("snapshot:before-part")
            self._objects.put(f"{location}/{name}.parquet", data)
            parts[name] = {"rows": table.num_rows, "bytes": len(data), "digest": digest(data).hex()}
            files[name] = data
        manifest = {
            "format": format_,
            "log": log,
            "version": state.version,
            "at": state.at,
            "location": location,
            "parts": parts,
        }
        self._objects.put(f"{location}/manifest.json", json.dumps(manifest, indent=1).encode())
        _add_smallest(parts, files, self._inline)
        pointer = SnapshotRecord(log, state.version, state.at, seal(json.dumps(manifest).encode()))
        return pointer, location, _size_of(manifest)

    def delete_folder(self, location: str) -> None:
        self._objects.delete(self._objects.list(location))


def _add_smallest(parts: Mapping[str, dict[str, Any]], files: Mapping[str, bytes], inline: int) -> None:
    for name, data in sorted(files.items(), key=lambda part: len(part[1])):
        inline -= len(data)
        if inline < 0:
            return
        parts[name]["data"] = base64.b64encode(data).decode()


def _location(state: State, unique: str) -> str:
    return f"{log_of(state)}/{state.version:020}-{unique[:8]}"


def version_of(path: str) -> int:
    """Returns the version of the snapshot that a file belongs to; -1 for a file that a state store did not write."""
    folder = path.split("/")[1] if "/" in path else ""
    number = folder.partition("-")[0]
    return int(number) if number.isascii() and number.isdecimal() else -1


def manifest_of(pointer: SnapshotRecord) -> Mapping[str, Any]:
    """Returns the manifest that a pointer contains. Raises Corrupt for a damaged one, Refused for a newer format."""
    where = f"snapshot {pointer.version} of log {pointer.log}"
    payload = unseal(pointer.body, where)
    try:
        manifest: Mapping[str, Any] = json.loads(payload)
        refuse_newer(manifest["format"], where, SNAPSHOT_FORMAT)
        if (manifest["log"], manifest["version"]) != (pointer.log, pointer.version):
            raise _damaged(pointer, f"it points to snapshot {manifest['version']} of log {shortened(manifest['log'])}")
        if wrong := fault_of_manifest(manifest):
            raise _damaged(pointer, wrong)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise _damaged(pointer, f"its pointer has an unexpected structure: {error!r}") from None
    return manifest


def fault_of_manifest(manifest: Mapping[str, Any]) -> str | None:
    """Returns the first fault of the names in a snapshot's manifest; None when the manifest has no fault.

    Names become paths, so only names that the state store itself would give are valid. Raises KeyError, TypeError or
    AttributeError for a manifest of another shape.
    """
    log, folder = str(manifest["log"]), str(manifest["location"])
    if not is_log_name(log) or not re.fullmatch(rf"{re.escape(log)}/\d{{20}}-[0-9a-f]{{1,32}}", folder):
        return f"its files cannot be at {shortened(folder)}"
    for name, part in manifest["parts"].items():
        if (
            not re.fullmatch("[a-z]{1,32}", name)
            or not isinstance(part["digest"], str)
            or type(part["bytes"] + part["rows"]) is not int
        ):
            return f"it cannot have a part {shortened(name)}"
    return None


def _size_of(manifest: Mapping[str, Any]) -> int:
    return sum(part["bytes"] for part in manifest["parts"].values())


def _damaged(pointer: SnapshotRecord, what: str) -> Corrupt:
    return Corrupt(what, where=f"snapshot {pointer.version} of log {pointer.log}", remedy=RECOVERY)
