"""The items of a state store in DynamoDB: their keys and attributes (described in docs/state-format.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deployer.state.backends.protocol import SnapshotRecord

Item = Mapping[str, Any]  #: an item in the form of DynamoDB's API: {"name": {"S": "text"}}

LOG, ITEM = "log_name", "item_name"  # the table's keys
HEAD = "head"  # sorts after all entries and before `newest`, so that one query reads all of them, newest first
_HEAD_ATTRIBUTES = ("version", "floor", "snapshot_version")
NEWEST = "newest"
STORE = "store"
BY_TRANSACTION = "by_transaction"

#: the arguments of `CreateTable`, except the name
TABLE_SCHEMA: Mapping[str, Any] = {
    "BillingMode": "PAY_PER_REQUEST",
    "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in (LOG, ITEM, "txn_id")],
    "KeySchema": [{"AttributeName": LOG, "KeyType": "HASH"}, {"AttributeName": ITEM, "KeyType": "RANGE"}],
    # a local index, because only local indexes support strongly consistent reads
    "LocalSecondaryIndexes": [
        {
            "IndexName": BY_TRANSACTION,
            "KeySchema": [{"AttributeName": LOG, "KeyType": "HASH"}, {"AttributeName": "txn_id", "KeyType": "RANGE"}],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
    ],
}


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a log: its newest version, its floor, and the version of its newest snapshot (0: none)."""

    version: int = 0
    floor: int = 0
    snapshot: int = 0


def text(value: str) -> Item:
    return {"S": value}


def number(value: int) -> Item:
    return {"N": str(value)}


def entry_name(version: int) -> str:
    return f"entry/{version:020}"


def snapshot_name(version: int) -> str:
    return f"snapshot/{version:020}"


def version_in(item: Item) -> int:
    """Returns the version in the name of an entry or a snapshot."""
    return int(item[ITEM]["S"].rpartition("/")[2])


def head_of(item: Item) -> Head:
    """Returns the head in an item. The head of a log that was removed before its first commit has only a floor."""
    return Head(*(int(item[name]["N"]) if name in item else 0 for name in _HEAD_ATTRIBUTES))


def pointer_item(log: str, name: str, snapshot: SnapshotRecord) -> Item:
    return {
        LOG: text(log),
        ITEM: text(name),
        "version": number(snapshot.version),
        "at": number(snapshot.at),
        "body": {"B": snapshot.body},
    }


def pointer_of(log: str, item: Item) -> SnapshotRecord:
    return SnapshotRecord(log, int(item["version"]["N"]), int(item["at"]["N"]), item["body"]["B"])


def key(log: str, name: str) -> Item:
    return {LOG: text(log), ITEM: text(name)}
