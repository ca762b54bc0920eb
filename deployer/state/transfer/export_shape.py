"""Checks of the shape of an export of a state store. The file, including its checksums, is untrusted.

Names in the file become paths, so only names that the state store itself would give are accepted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from deployer.errors import Corrupt
from deployer.platform.files.json_documents import NotADocument, read_document
from deployer.state.log.entries import from_json

MANIFEST = "manifest.json"
_LOG = re.compile(r"[A-Za-z0-9_-]{1,64}")
_PART = re.compile(r"[a-z]{1,32}")
_NEWEST = 2**62  #: versions, times (ms) and sizes are below this number


def fault_of_export(manifest: Mapping[str, Any], members: Sequence[str]) -> str | None:
    """Returns the first fault of an export's manifest or of the names of its members; None if there is no fault."""
    return next(_faults(manifest, members), None)


def fault_of_entries(log: str, described: Mapping[str, Any], lines: Sequence[bytes]) -> str | None:
    """Returns the first fault of a log's entries; None if there is no fault.

    The entries must follow each other up to the log's newest version, and each must be readable. `described` is the
    log's part of the manifest. Raises Refused for an entry of a newer deployer.
    """
    newest, snapshots, ids = described["version"], described["snapshots"], set[str]()
    first = newest - len(lines) + 1
    if first < 1 or (first > 1 and not (snapshots and snapshots[0]["version"] >= first - 1)):
        return f"log {log} does not have the entries that make its newest state"
    for version, line in enumerate(lines, first):
        try:
            document = read_document(line)
            entry = from_json(document)
        except Corrupt as error:
            return f"entry {version} of log {log} cannot be read: {error.what}"
        except (NotADocument, KeyError, TypeError, ValueError, AttributeError) as error:
            return f"entry {version} of log {log} cannot be read: {error}"
        if (entry.log, entry.version) != (log, version) or not _is_count(document["version"]):
            return f"in the place of entry {version} of log {log} there is another"
        if not isinstance(entry.txn_id, str) or entry.txn_id in ids:
            return f"entry {version} of log {log} does not have an id of its own"
        ids.add(entry.txn_id)
    return None


def members_of(log: str, described: Mapping[str, Any]) -> list[str]:
    """Returns the names of the archive's members that a log of the manifest needs."""
    return [f"{log}/entries.jsonl", *(file for each in described["snapshots"] for file in files_of(each))]


def files_of(snapshot: Mapping[str, Any]) -> list[str]:
    """Returns the paths of the files of a snapshot, which its manifest names."""
    return [f"{snapshot['location']}/{name}" for name in (MANIFEST, *(f"{part}.parquet" for part in snapshot["parts"]))]


def _faults(manifest: Mapping[str, Any], members: Sequence[str]) -> Iterator[str]:
    logs, digests = manifest.get("logs"), manifest.get("digests")
    if not isinstance(logs, Mapping) or not isinstance(digests, Mapping):
        yield "its manifest has an unexpected structure"
        return
    for log, described in logs.items():
        if not _is_name(_LOG, log):
            yield f"log {log[:100]!r} or its snapshots have names that no export has"
        elif (
            not isinstance(described, Mapping)
            or not _is_count(described.get("version"))
            or not isinstance(described.get("snapshots"), list)
        ):
            yield f"log {log} has an unexpected structure"
        else:
            yield from _of_snapshots(log, described["version"], described["snapshots"])
    needed = dict.fromkeys(name for log, described in logs.items() for name in members_of(log, described))
    if missing := next((name for name in needed if not isinstance(digests.get(name), str)), None):
        yield f"it has no checksum of {missing}"
    files = [name for name in members if not name.endswith("/")]  # a tool that packs the export again may add folders
    if unknown := next((name for name in (*digests, *files) if name != MANIFEST and name not in needed), None):
        yield f"it has the member {unknown[:100]!r}, which no export has"
    if len(set(files)) < len(files):
        yield "it has two members of one name"


def _of_snapshots(log: str, newest: int, snapshots: Sequence[Any]) -> Iterator[str]:
    last, place = 0, re.compile(rf"{re.escape(log)}/\d{{20}}-[0-9a-f]{{1,32}}")
    for number, snapshot in enumerate(snapshots, 1):
        parts = snapshot.get("parts") if isinstance(snapshot, Mapping) else None
        if not isinstance(parts, Mapping) or not all(map(_is_part, parts.values())):
            yield f"snapshot {number} of log {log} has an unexpected structure"
            return
        if not _is_name(place, snapshot.get("location")) or not all(_is_name(_PART, part) for part in parts):
            yield f"log {log!r} or its snapshots have names that no export has"
            return
        version = snapshot.get("version")
        if snapshot.get("log") != log or not _is_count(version) or not last < version <= newest:
            yield f"snapshot {number} of log {log} is of another log, or of a version that cannot be there"
            return
        if not _is_count(snapshot.get("at")) or not _is_count(snapshot.get("format")):
            yield f"snapshot {number} of log {log} has an unexpected structure"
            return
        last = version


def _is_part(part: object) -> bool:
    return (
        isinstance(part, Mapping)
        and isinstance(part.get("digest"), str)
        and _is_count(part.get("rows"))
        and _is_count(part.get("bytes"))
    )


def _is_name(form: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and form.fullmatch(value) is not None


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _NEWEST
