"""Entries of a log, and their conversion to stored bytes and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deployer.errors import Corrupt
from deployer.platform.storage.envelope import FORGED, RECOVERY, seal, unseal
from deployer.state.backends.protocol import Record
from deployer.state.log.codec import Kinds, Mismatch, decode_scalar
from deployer.state.log.requirements import Requirement
from deployer.state.log.updates import Update

UPDATES = Kinds("update", Update)
REQUIREMENTS = Kinds("requirement", Requirement)

LATEST = 253_402_300_799_999  #: ms since 1970: the end of the year 9999, the last year of Python's dates


@dataclass(frozen=True, slots=True)
class LogEntry:
    """The part of a committed transaction that one log stores.

    `at` is the time of the commit in ms since 1970 (UTC); it never decreases within a log.
    """

    log: str
    version: int
    txn_id: str
    at: int
    author: str
    updates: tuple[Update, ...]
    requirements: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True)
class DamagedEntry:
    """An entry that cannot be read. `why` states the fault."""

    version: int
    why: str


def to_json(entry: LogEntry) -> dict[str, Any]:
    return {
        "log": entry.log,
        "version": entry.version,
        "txn_id": entry.txn_id,
        "at": entry.at,
        "author": entry.author,
        "updates": [UPDATES.encode(update) for update in entry.updates],
        "requirements": [REQUIREMENTS.encode(requirement) for requirement in entry.requirements],
    }


def from_json(document: Mapping[str, Any], *, to_fold: bool = False) -> LogEntry:
    """Returns the entry that a JSON object describes.

    With `to_fold`, the entry has no requirements: they held when the entry was committed, and decoding them is a third
    of the work. Raises Corrupt for a document of another shape, and Refused for updates or requirements of a newer
    deployer.
    """
    try:
        if not 0 <= (at := decode_scalar(int, document["at"])) <= LATEST:
            raise Mismatch(f"{at} is not a time")
        return LogEntry(
            log=decode_scalar(str, document["log"]),
            version=decode_scalar(int, document["version"]),
            txn_id=decode_scalar(str, document["txn_id"]),
            at=at,
            author=decode_scalar(str, document["author"]),
            updates=tuple(UPDATES.decode(update) for update in document["updates"]),
            requirements=tuple(() if to_fold else map(REQUIREMENTS.decode, document["requirements"])),
        )
    except (KeyError, TypeError, Mismatch) as error:
        raise Corrupt(f"a log entry has an unexpected structure: {error!r}") from None


def to_record(entry: LogEntry) -> Record:
    body = json.dumps(to_json(entry), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Record(entry.log, entry.version, entry.txn_id, seal(body.encode()))


def from_record(record: Record, *, to_fold: bool = False) -> LogEntry:
    """Returns the entry that a record holds (`to_fold`: see `from_json`).

    Raises Corrupt, which names the entry, when the entry is damaged or is stored in the place of another one. Raises
    Refused for updates or requirements of a newer deployer.
    """
    where = f"entry {record.version} of log {record.log}"
    payload = unseal(record.body, where)
    try:
        entry = from_json(json.loads(payload.decode()), to_fold=to_fold)
    except Corrupt as error:
        raise Corrupt(error.what, where=where, remedy=FORGED) from None
    except ValueError as error:  # the payload is not valid JSON or UTF-8
        raise Corrupt(f"it is not a log entry: {error}", where=where, remedy=RECOVERY) from None
    except RecursionError:
        raise Corrupt("it is nested too deep", where=where, remedy=FORGED) from None
    if (entry.log, entry.version, entry.txn_id) != (record.log, record.version, record.txn_id):
        raise Corrupt(f"it holds entry {entry.version} of log {entry.log}", where=where, remedy=RECOVERY)
    return entry


def read_or_damaged(record: Record) -> LogEntry | DamagedEntry:
    """Returns the entry that a record holds, or its fault if it is damaged. Raises Refused as `from_record` does."""
    try:
        return from_record(record)
    except Corrupt as error:
        return DamagedEntry(record.version, error.what)
