"""The backend of an instance on S3: the logs are items of a DynamoDB table, and large bodies are objects in the bucket.

Each log has a *head* item with its newest version and its floor. A commit is one `TransactWriteItems`: it puts the
entry unless the entry exists, and moves the head from version n to n+1 if the head is at n and its floor is not above
n. So the condition on the floor is part of the same write, and a version is written only once, even after its removal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from deployer.errors import InvalidInput, OutcomeUnknown
from deployer.platform.storage.envelope import digest
from deployer.platform.storage.objects import ObjectStore
from deployer.platform.system.failpoints import reached
from deployer.state.backends.dynamodb.items import (
    HEAD,
    ITEM,
    LOG,
    NEWEST,
    STORE,
    Item,
    entry_name,
    key,
    number,
    pointer_item,
    pointer_of,
    snapshot_name,
    text,
)
from deployer.state.backends.dynamodb.reads import DynamoReads
from deployer.state.backends.dynamodb.requests import ConditionFailed, Requests, Throttled
from deployer.state.backends.group_commit import Ticket
from deployer.state.backends.protocol import REMOVED, Record, SnapshotRecord, Tail

INLINE = 256 * 1024  #: bytes; a larger body is stored as an object, because an item has at most 400 KB
TRANSACTION_BYTES = 3_500_000  #: bytes of all bodies in one transaction; DynamoDB allows 4 MB
TRANSACTION_LOGS = 49  #: logs of one transaction, with two items each and one for the store; DynamoDB allows 100 items
_DELETES_AT_ONCE = 25

_NEW = f"attribute_not_exists({LOG})"
_THERE = f"attribute_exists({LOG})"


class DynamoBackend:
    """The implementation of `protocol.Backend` for the store `store_id` in a DynamoDB table. It is safe for threads and
    processes."""

    transaction_logs: int | None = TRANSACTION_LOGS

    def __init__(self, requests: Requests, objects: ObjectStore, store_id: str) -> None:
        self._requests, self._objects, self._store = requests, objects, store_id
        self._table = requests.table.name
        self._reads = DynamoReads(requests, objects, store_id)

    def put(self, records: Sequence[Record]) -> bool:
        if len(records) > TRANSACTION_LOGS:
            raise InvalidInput(
                f"one transaction over {len(records)} logs; DynamoDB allows {TRANSACTION_LOGS}",
                where=str(self._requests.table),
                remedy="commit in several transactions",
            )
        inline = min(INLINE, TRANSACTION_BYTES // len(records))
        items = [self._entry(record, inline) for record in records]
        writes = [self._put_item(item, _NEW) for item in items] + [self._head_moved(record) for record in records]
        if any(record.version == 1 for record in records):
            writes.append(self._check(key(self._store, STORE), _THERE))  # the store was not removed meanwhile
        try:
            self._requests.write("transact_write_items", TransactItems=writes)
        except Throttled:
            return False
        except ConditionFailed as failed:
            return self._was_written(records, items, failed)
        return True

    def flush(self) -> None:
        """Does nothing, because every write that DynamoDB has accepted is durable."""

    def turn(self) -> AbstractContextManager[bool]:
        return nullcontext(False)

    def turn_at(self, log: str, would_do: Callable[[], bytes] | None = None) -> AbstractContextManager[Ticket]:
        return nullcontext(Ticket())

    def tails(self, after: Mapping[str, int]) -> Mapping[str, Tail]:
        return self._reads.tails(after)

    def records(self, log: str, after: int, limit: int | None = None) -> Sequence[Record]:
        return self._reads.records(log, after, limit)

    def find(self, log: str, txn_id: str) -> int | None:
        return self._reads.find(log, txn_id)

    def snapshots(self, log: str) -> Sequence[SnapshotRecord]:
        return self._reads.snapshots(log)

    def add_snapshot(self, snapshot: SnapshotRecord) -> bool:
        log, version = self._reads.key_of(snapshot.log), number(snapshot.version)
        own = pointer_item(log, snapshot_name(snapshot.version), snapshot)
        in_doubt = False
        while True:
            head = self._reads.head(snapshot.log)
            if not head.floor < snapshot.version <= head.version and not in_doubt:
                return False
            writes = [self._put_item(own, _NEW)]
            if snapshot.version > head.snapshot:
                values = {":new": version, ":old": number(head.snapshot)}
                moved = self._check(key(log, HEAD), "floor < :new AND snapshot_version = :old", values)[
                    "ConditionCheck"
                ]
                writes.append({"Update": {**moved, "UpdateExpression": "SET snapshot_version = :new"}})
                writes.append(self._put_item(pointer_item(log, NEWEST, snapshot)))
            else:
                writes.append(self._check(key(log, HEAD), "floor < :new", {":new": version}))
            try:
                self._requests.write("transact_write_items", TransactItems=writes)
            except ConditionFailed as failed:
                in_doubt = in_doubt or failed.in_doubt
                there = self._reads.items([(snapshot.log, own[ITEM]["S"])])
                for item in there.values():
                    return bool(item == own)
                if in_doubt and snapshot.version <= self._reads.head(snapshot.log).floor:
                    raise OutcomeUnknown("the answer to a snapshot was lost", where=str(self._requests.table)) from None
                continue  # the head changed: another snapshot, a new floor, or a transaction at the same moment
            return True

    def replace_snapshot(self, snapshot: SnapshotRecord) -> bool:
        log = self._reads.key_of(snapshot.log)
        while True:
            head = self._reads.head(snapshot.log)
            values = {":newest": number(head.snapshot)}
            item = pointer_item(log, snapshot_name(snapshot.version), snapshot)
            writes = [self._put_item(item, _THERE), self._check(key(log, HEAD), "snapshot_version = :newest", values)]
            if snapshot.version == head.snapshot:
                writes.append(self._put_item(pointer_item(log, NEWEST, snapshot)))
            try:
                self._requests.write("transact_write_items", TransactItems=writes)
            except ConditionFailed:
                if not self._reads.items([(snapshot.log, item[ITEM]["S"])]):
                    return False
                continue  # another snapshot became the newest, or a transaction came at the same moment
            return True

    def begin_at(self, log: str, version: int) -> bool:
        head = {"version": number(version), "floor": number(version - 1), "snapshot_version": number(0)}
        own = {**key(self._reads.key_of(log), HEAD), **head}
        try:
            self._requests.write("put_item", TableName=self._table, Item=own, ConditionExpression=_NEW)
        except ConditionFailed as failed:
            return failed.in_doubt and self._reads.items([(log, HEAD)]) == {(log, HEAD): own}
        return True

    def wipe(self) -> None:
        """Does nothing, because DynamoDB keeps deleted items only in its own backups."""

    def truncate(self, log: str, floor: int) -> Sequence[SnapshotRecord]:
        if not self._raise_floor(log, floor) and floor != REMOVED:
            return []
        gone = [item for page in self._reads.pages(log, snapshot_name(1), snapshot_name(floor - 1)) for item in page]
        names = [item[ITEM]["S"] for item in gone] + ([NEWEST] if floor == REMOVED else [])
        reached("dynamodb:before-delete")
        for page in self._reads.pages(log, entry_name(1), entry_name(floor), ProjectionExpression=ITEM):
            names += [item[ITEM]["S"] for item in page]
        self._delete(log, names)
        return [pointer_of(log, item) for item in gone]

    def logs(self) -> Sequence[str]:
        return self._reads.logs()

    def close(self) -> None:
        self._reads.close()

    def _entry(self, record: Record, inline: int) -> Item:
        """Returns the item of an entry. A body of more than `inline` bytes is first written as an object, which the
        item names.

        The object's name starts with the log and the version. Retention deletes objects at or below the floor, where
        entries can no longer be put.
        """
        item = {**key(self._reads.key_of(record.log), entry_name(record.version)), "txn_id": text(record.txn_id)}
        if len(record.body) <= inline:
            return {**item, "body": {"B": record.body}}
        path = f"{record.log}/{record.version:020}-{digest(record.body).hex()}.entry"
        self._objects.put(path, record.body)
        reached("dynamodb:after-body")
        return {**item, "body_at": text(path)}

    def _head_moved(self, record: Record) -> Item:
        head, values = key(self._reads.key_of(record.log), HEAD), {":old": number(record.version - 1)}
        values[":new"] = number(record.version)
        if record.version == 1:
            update, condition = "SET version = :new, floor = :old, snapshot_version = :old", _NEW
        else:
            update, condition = "SET version = :new", "version = :old AND floor <= :old"
        return {"Update": {**self._check(head, condition, values)["ConditionCheck"], "UpdateExpression": update}}

    def _put_item(self, item: Item, condition: str | None = None) -> Item:
        if condition is None:
            return {"Put": {"TableName": self._table, "Item": item}}
        return {
            "Put": {
                "TableName": self._table,
                "Item": item,
                "ConditionExpression": condition,
                "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            }
        }

    def _check(self, of: Item, condition: str, values: Item | None = None) -> Item:
        check: dict[str, Any] = {"TableName": self._table, "Key": of, "ConditionExpression": condition}
        return {"ConditionCheck": {**check, "ExpressionAttributeValues": values} if values else check}

    def _was_written(self, records: Sequence[Record], items: Sequence[Item], failed: ConditionFailed) -> bool:
        """Returns whether entries that were refused exist already because the same request came twice.

        Raises OutcomeUnknown when that can no longer be determined, NotFound when the store was removed.
        """
        own = dict(zip([(record.log, entry_name(record.version)) for record in records], items, strict=True))
        found = {name: item for name, item in zip(own, failed.found, strict=False) if item}
        if any(found[name] != own[name] for name in found):
            return False
        if found or failed.in_doubt:
            found |= self._reads.items(own.keys() - found.keys())
        if found == own:
            return True
        if any(record.version == 1 for record in records):
            self._reads.store_there()
        if failed.in_doubt and not any(found[name] != own[name] for name in found):
            heads = self._reads.heads(record.log for record in records)
            # If the transaction had been written, every log would have its version. Otherwise it will never be written.
            if all(heads[record.log].version >= record.version for record in records):
                raise OutcomeUnknown(
                    f"the answer to transaction {records[0].txn_id} was lost, and its entries are not kept any more",
                    where=str(self._requests.table),
                    remedy="check the state before you try again",
                )
        return False

    def _raise_floor(self, log: str, floor: int) -> bool:
        condition = "floor < :floor AND version >= :floor"
        if floor == REMOVED:
            condition = "attribute_not_exists(floor) OR floor < :floor"
        head = key(self._reads.key_of(log), HEAD)
        update = self._check(head, condition, {":floor": number(floor)})["ConditionCheck"]
        try:
            self._requests.write("update_item", **update, UpdateExpression="SET floor = :floor")
        except ConditionFailed as failed:
            return failed.in_doubt and self._reads.head(log).floor == floor
        return True

    def _delete(self, log: str, names: Sequence[str]) -> None:
        keys = [key(self._reads.key_of(log), name) for name in names]
        for i in range(0, len(keys), _DELETES_AT_ONCE):
            deletes = [{"DeleteRequest": {"Key": each}} for each in keys[i : i + _DELETES_AT_ONCE]]
            for _ in self._requests.batch("batch_write_item", {self._table: deletes}, "UnprocessedItems"):
                pass
