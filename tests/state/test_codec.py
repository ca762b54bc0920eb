"""Updates, requirements and entries as JSON: nothing is lost, and what is not understood is refused in words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from deployer.errors import Corrupt, Refused
from deployer.state.backends.protocol import Record
from deployer.state.log.entries import REQUIREMENTS, UPDATES, LogEntry, from_json, from_record, to_json, to_record
from deployer.state.log.requirements import FilesPresent, LogEmpty, Requirement
from deployer.state.log.updates import (
    FilesAdded,
    PartitionSplit,
    RegisterTable,
    SetLanceVersion,
    TableRestored,
    Update,
)
from deployer.state.model.entities import TableProperties
from deployer.state.model.services import Service

from .samples import TABLE, entry, file
from .strategies import members


@given(members(Update))
def test_updates_survive_json(update: Update) -> None:
    assert UPDATES.decode(json.loads(json.dumps(UPDATES.encode(update)))) == update


@given(members(Requirement))
def test_requirements_survive_json(requirement: Requirement) -> None:
    assert REQUIREMENTS.decode(json.loads(json.dumps(REQUIREMENTS.encode(requirement)))) == requirement


def test_columns_that_came_since_may_be_missing() -> None:
    update = TableRestored("7f", "then", 1, "", 9, b"s", TableProperties(), (), (), (), (Service("CLEAN"),))
    document = json.loads(json.dumps(UPDATES.encode(update)))
    del document["services"]["since"]
    assert UPDATES.decode(document) == update
    del document["services"]["kind"]
    with pytest.raises(Corrupt, match="columns are not those of Service"):
        UPDATES.decode(document)


# What is stored must stay readable: these are in users' logs.
GOLDEN: list[tuple[Update, dict[str, Any]]] = [
    (
        RegisterTable(entry()),
        {
            "type": "register-table",
            "entry": {
                "table_id": TABLE,
                "database": "nyc",
                "name": "flights",
                "location": "nyc/flights-a1b2c3d4.lance",
                "status": "active",
                "created_at": 1_700_000_000_000,
                "dataset": 1,
            },
        },
    ),
    (
        FilesAdded((file(1), file(2, None, None)), 3, "job", 20),
        {
            "type": "files-added",
            "files": {
                "fragment_id": [1, 2],
                "partition": ["root", "root"],
                "rows": [10, 10],
                "bytes": [1000, 1000],
                "min_key": ["YQ==", None],
                "max_key": ["Yg==", None],
                "column_min": [["YQ=="], []],
                "column_max": [["Yg=="], []],
                "sorted": [True, False],
            },
            "lance_version": 3,
            "job_id": "job",
            "rows": 20,
            "kind": "ingest",
        },
    ),
    (
        PartitionSplit("root", b"\xff", "l", "r"),
        {"type": "partition-split", "partition_id": "root", "split_point": "/w==", "left_id": "l", "right_id": "r"},
    ),
]


@pytest.mark.parametrize(("update", "document"), GOLDEN, ids=[document["type"] for _, document in GOLDEN])
def test_the_json_form_is_stable(update: Update, document: dict[str, Any]) -> None:
    assert UPDATES.encode(update) == document
    assert UPDATES.decode(document) == update


STRANGE: list[tuple[str, Any, type[Exception], str]] = [
    (
        "a kind of the future",
        {"type": "files-moved"},
        Refused,
        "'files-moved' is unknown: .* newer deployer; upgrade",
    ),
    ("no kind", {"lance_version": 1}, Corrupt, "has no type"),
    ("not an object", [1], Corrupt, "has no type"),
    ("a field missing", {"type": "set-lance-version"}, Corrupt, "lance_version: missing"),
    ("a field unknown", {"type": "set-lance-version", "lance_version": 1, "x": 2}, Corrupt, "x: not known"),
    ("text for a number", {"type": "set-lance-version", "lance_version": "1"}, Corrupt, "'1' is not an integer"),
    ("true for a number", {"type": "set-lance-version", "lance_version": True}, Corrupt, "True is not an integer"),
    ("not base64", {"type": "set-schema", "schema": "?", "lance_version": 1}, Corrupt, "is not base64"),
    ("a status unknown", {"type": "set-table-status", "table_id": "t", "status": "x"}, Corrupt, "'x' is none of"),
    ("ragged columns", {"type": "files-added", "files": {"rows": [1]}, "lance_version": 1}, Corrupt, "columns are not"),
    ("not a list", {"type": "files-removed", "removed": "12", "lance_version": 1}, Corrupt, "'12' is not a list"),
]


@pytest.mark.parametrize(("document", "error", "words"), [row[1:] for row in STRANGE], ids=[row[0] for row in STRANGE])
def test_what_is_not_understood_is_refused_in_words(document: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        UPDATES.decode(document)


ENTRY = LogEntry(TABLE, 7, "txn", 1_700_000_000_000, "ann", (SetLanceVersion(4),), (LogEmpty(), FilesPresent((1, 2))))


@pytest.mark.parametrize("updates", [1, 500], ids=["plain", "deflated"])
def test_entries_survive_storage(updates: int) -> None:
    stored = LogEntry(TABLE, 7, "txn", 1, "ann", ENTRY.updates * updates)
    record = to_record(stored)
    assert from_record(record) == stored
    assert len(record.body) < 3000
    assert from_json(to_json(ENTRY)) == ENTRY


def _damaged(body: bytes, at: int) -> bytes:
    return body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]


BODY = to_record(ENTRY).body
DAMAGE: list[tuple[str, Record, type[Exception], str]] = [
    ("a bit flipped", Record(TABLE, 7, "txn", _damaged(BODY, 60)), Corrupt, "checksum does not match"),
    ("its checksum flipped", Record(TABLE, 7, "txn", _damaged(BODY, 8)), Corrupt, "checksum does not match"),
    ("cut short", Record(TABLE, 7, "txn", BODY[:-1]), Corrupt, "checksum does not match"),
    ("nothing", Record(TABLE, 7, "txn", b""), Corrupt, "the state store did not write this content"),
    ("something else", Record(TABLE, 7, "txn", b"x" * 100), Corrupt, "the state store did not write this content"),
    ("in another's place", Record(TABLE, 8, "txn", BODY), Corrupt, f"it holds entry 7 of log {TABLE}"),
    ("in another log", Record("other", 7, "txn", BODY), Corrupt, f"it holds entry 7 of log {TABLE}"),
    (
        "a format of the future",
        Record(TABLE, 7, "txn", BODY[:3] + b"\x02" + BODY[4:]),
        Refused,
        r"written by a newer deployer \(format 2\), this one reads up to 1; upgrade",
    ),
]


@pytest.mark.parametrize(("record", "error", "words"), [row[1:] for row in DAMAGE], ids=[row[0] for row in DAMAGE])
def test_a_damaged_entry_is_noticed_and_named(record: Record, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words) as caught:
        from_record(record)
    assert f"entry {record.version} of log {record.log}" in str(caught.value)
