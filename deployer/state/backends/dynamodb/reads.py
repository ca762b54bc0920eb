"""Strongly consistent reading of the logs of a state store in DynamoDB.

A reader gets the log as of the moment at which it read the log's head. Entries at or below the head's version were
written before that and never change, so they may be read page by page. A removal by retention is detected, because
retention raises the floor first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from deployer.errors import Corrupt, NotFound, OutcomeUnknown
from deployer.platform.storage.envelope import RECOVERY
from deployer.platform.storage.objects import Missing, ObjectReader
from deployer.state.backends.dynamodb.items import (
    BY_TRANSACTION,
    HEAD,
    ITEM,
    LOG,
    NEWEST,
    STORE,
    Head,
    Item,
    entry_name,
    head_of,
    key,
    pointer_of,
    snapshot_name,
    text,
    version_in,
)
from deployer.state.backends.dynamodb.requests import Requests
from deployer.state.backends.protocol import REMOVED, Record, SnapshotRecord, Tail

HEADS_AT_ONCE = 100  #: maximum number of heads in one TransactGetItems
ITEMS_AT_ONCE = 100  #: maximum number of items in one BatchGetItem
_FIRST_PAGE = 600  # items; a log usually has fewer after its newest snapshot
_ATTEMPTS = 100  # attempts to read while others commit to the logs or remove entries


@dataclass(slots=True)
class _Found:
    """The head of a log, and the items by name that were read together with it."""

    head: Head
    items: dict[str, Item] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Lost:
    """The name of an item or object that a reader needs and that was removed meanwhile, or is missing."""

    what: str


class DynamoReads:
    """The implementation of `protocol.LogReader` on DynamoDB, which `DynamoBackend` uses to read."""

    def __init__(self, requests: Requests, objects: ObjectReader, store_id: str) -> None:
        self._requests, self._objects, self._store = requests, objects, store_id
        self._table = requests.table.name

    def key_of(self, log: str) -> str:
        """Returns the partition key of a log. It includes the id of the store, so that writers of a removed store
        cannot write to its successor."""
        return f"{self._store}/{log}"

    def tails(self, after: Mapping[str, int]) -> Mapping[str, Tail]:
        before: dict[str, Head] | None = None
        for _ in range(_ATTEMPTS):
            if len(after) == 1:
                ((log, version),) = after.items()
                found = {log: self._one(log, version)}
            else:
                found = {log: _Found(head) for log, head in self.heads(after).items()}
            heads = {log: each.head for log, each in found.items()}
            if Head() in heads.values():
                self.store_there()
            tails = self._tails(after, found)
            if not isinstance(tails, _Lost):
                return tails
            if heads == before:  # the heads do not change, so retention did not remove the item
                raise Corrupt("it is missing", where=tails.what, remedy=RECOVERY)
            before = heads
        raise OutcomeUnknown(
            "the entries are removed faster than they can be read",
            where=str(self._requests.table),
            remedy="try again",
        )

    def records(self, log: str, after: int, limit: int | None = None) -> Sequence[Record]:
        found: list[Item] = []
        for page in self.pages(log, entry_name(after + 1), entry_name(REMOVED), limit=limit):
            found += page
        # A removal of entries raises the floor first, so a floor that is read now is at or above all removed entries.
        floor = self.head(log).floor
        records = []
        for item in found:
            if version_in(item) <= floor:
                continue
            try:
                records.append(self._record(log, item))
            except Missing as missing:
                if version_in(item) > self.head(log).floor:
                    raise Corrupt(
                        f"its body {missing} is missing",
                        where=f"entry {version_in(item)} of log {log}",
                        remedy=RECOVERY,
                    ) from None
        return records

    def find(self, log: str, txn_id: str) -> int | None:
        answer = self._requests.read(
            "query",
            TableName=self._table,
            IndexName=BY_TRANSACTION,
            ConsistentRead=True,
            KeyConditionExpression=f"{LOG} = :log AND txn_id = :txn",
            ExpressionAttributeValues={":log": text(self.key_of(log)), ":txn": text(txn_id)},
        )
        version = max((version_in(item) for item in answer["Items"]), default=None)
        return version if version is not None and version > self.head(log).floor else None

    def snapshots(self, log: str) -> Sequence[SnapshotRecord]:
        items = [item for page in self.pages(log, snapshot_name(1), snapshot_name(REMOVED)) for item in page]
        floor = self.head(log).floor if items else 0
        return [pointer for item in items if (pointer := pointer_of(log, item)).version >= floor]

    def logs(self) -> Sequence[str]:
        found: list[str] = []
        start: dict[str, Any] = {}
        while True:  # reads the whole table, which is acceptable because it is rarely needed
            answer = self._requests.read(
                "scan",
                TableName=self._table,
                ConsistentRead=True,
                FilterExpression=f"{ITEM} = :head AND begins_with({LOG}, :store)",
                ExpressionAttributeValues={":head": text(HEAD), ":store": text(self.key_of(""))},
                **start,
            )
            found += [item[LOG]["S"].partition("/")[2] for item in answer["Items"] if head_of(item).floor != REMOVED]
            if "LastEvaluatedKey" not in answer:
                return sorted(found)
            start = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}

    def close(self) -> None:
        self._requests.close()

    def head(self, log: str) -> Head:
        answer = self._requests.read(
            "get_item", TableName=self._table, Key=key(self.key_of(log), HEAD), ConsistentRead=True
        )
        return head_of(answer.get("Item", {}))

    def heads(self, logs: Iterable[str]) -> dict[str, Head]:
        """Returns the heads of several logs, all as of one moment.

        One `TransactGetItems` reads up to `HEADS_AT_ONCE` heads at one moment. More heads are read in rounds until two
        rounds find the same: versions only grow, so the result of both rounds was true between them. Raises
        OutcomeUnknown when the logs change too fast.
        """
        wanted = list(logs)
        chunks = [wanted[i : i + HEADS_AT_ONCE] for i in range(0, len(wanted), HEADS_AT_ONCE)]
        before: dict[str, Head] | None = None
        for _ in range(_ATTEMPTS):
            found = {log: head for chunk in chunks for log, head in self._heads_at_once(chunk).items()}
            if len(chunks) <= 1 or found == before:
                return found
            before = found
        raise OutcomeUnknown(
            f"{len(wanted)} logs change faster than they can be read together",
            where=str(self._requests.table),
            remedy="read fewer at once, or try again",
        )

    def items(self, names: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Item]:
        """Returns items by log and name. Items that do not exist are left out."""
        wanted = [key(self.key_of(log), name) for log, name in names]
        found: dict[tuple[str, str], Item] = {}
        for i in range(0, len(wanted), ITEMS_AT_ONCE):
            request = {self._table: {"Keys": wanted[i : i + ITEMS_AT_ONCE], "ConsistentRead": True}}
            for answer in self._requests.batch("batch_get_item", request, "UnprocessedKeys"):
                for item in answer["Responses"].get(self._table, ()):
                    found[item[LOG]["S"].partition("/")[2], item[ITEM]["S"]] = item
        return found

    def pages(
        self, log: str, first: str, last: str, *, limit: int | None = None, forward: bool = True, **more: Any
    ) -> Iterator[Sequence[Item]]:
        """Yields pages of the items with names from `first` to `last`, at most `limit` items in total."""
        request: dict[str, Any] = {
            "TableName": self._table,
            "ConsistentRead": True,
            "KeyConditionExpression": f"{LOG} = :log AND {ITEM} BETWEEN :first AND :last",
            "ExpressionAttributeValues": {
                ":log": text(self.key_of(log)),
                ":first": text(first),
                ":last": text(last),
            },
            "ScanIndexForward": forward,
            **more,
        }
        while first <= last and limit != 0:
            if limit is not None:
                request["Limit"] = limit
            answer = self._requests.read("query", **request)
            yield answer["Items"]
            if limit is not None:
                limit -= len(answer["Items"])
            if "LastEvaluatedKey" not in answer:
                return
            request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    def store_there(self) -> None:
        """Raises NotFound when the store was removed."""
        answer = self._requests.read(
            "get_item", TableName=self._table, Key=key(self._store, STORE), ConsistentRead=True
        )
        if "Item" not in answer:
            raise NotFound("its state store was removed", where=str(self._requests.table))

    def _heads_at_once(self, logs: Sequence[str]) -> dict[str, Head]:
        gets = [{"Get": {"TableName": self._table, "Key": key(self.key_of(log), HEAD)}} for log in logs]
        answer = self._requests.read("transact_get_items", TransactItems=gets)
        return {log: head_of(each.get("Item", {})) for log, each in zip(logs, answer["Responses"], strict=True)}

    def _one(self, log: str, after: int) -> _Found:
        """Returns the head of a log and its items after version `after`, read newest first.

        It needs only one request if one page holds all of them.
        """
        newest = NEWEST if after == 0 else HEAD
        found = _Found(Head())
        for page in self.pages(log, entry_name(after + 1), newest, forward=False, Limit=_FIRST_PAGE):
            found.items |= {item[ITEM]["S"]: item for item in page}
            found.head = head_of(found.items.get(HEAD, {}))
            needed = _needed(found.head, after, _start(found.head, after))
            if not needed or needed[-1] in found.items:
                break
        return found

    def _tails(self, after: Mapping[str, int], found: Mapping[str, _Found]) -> Mapping[str, Tail] | _Lost:
        starts = {log: _start(each.head, after[log]) for log, each in found.items()}
        needed = {log: _needed(each.head, after[log], starts[log]) for log, each in found.items()}
        names = [(log, name) for log, each in found.items() for name in needed[log] if name not in each.items]
        more = self.items(names)
        tails: dict[str, Tail] = {}
        for log, each in found.items():
            head = each.head
            if 0 < head.version < after[log] and head.floor != REMOVED:
                raise Corrupt(
                    f"it ends at version {head.version}, and version {after[log]} was there before",
                    where=f"log {log} in {self._requests.table}",
                    remedy="was the table restored from a backup? look at the state, then start again",
                )
            if head.floor == REMOVED or head.version < after[log]:
                tails[log] = Tail(REMOVED, None, from_snapshot=False, records=())
                continue
            snapshot, records = None, []
            for name in needed[log]:
                item = each.items.get(name) or more.get((log, name))
                if item is None:
                    return _Lost(f"{name} of log {log}")
                if name == NEWEST:
                    snapshot = pointer_of(log, item)
                    continue
                try:
                    records.append(self._record(log, item))
                except Missing as missing:
                    return _Lost(f"{missing}, the body of {name} of log {log}")
            if snapshot is not None and snapshot.version != head.snapshot:
                return _Lost(f"{snapshot_name(head.snapshot)} of log {log}")
            from_snapshot = starts[log] != after[log]
            tails[log] = Tail(head.floor, snapshot, from_snapshot, tuple(reversed(records)), head.snapshot)
        return tails

    def _record(self, log: str, item: Item) -> Record:
        """Returns the record in an item. Raises Missing when its body is an object that does not exist."""
        body = item["body"]["B"] if "body" in item else self._objects.get(item["body_at"]["S"])
        return Record(log, version_in(item), item["txn_id"]["S"], body)


def _start(head: Head, after: int) -> int:
    """Returns the version after which a reader at version `after` reads entries."""
    return head.snapshot if after == 0 or after < head.floor else after


def _needed(head: Head, after: int, start: int) -> list[str]:
    """Returns the names of the items that a reader at version `after` lacks, in descending order of the table."""
    if head.floor == REMOVED:
        return []
    names = [entry_name(version) for version in range(head.version, max(start, head.floor), -1)]
    return [NEWEST, *names] if start != after else names
