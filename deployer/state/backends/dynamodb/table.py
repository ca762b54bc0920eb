"""Creation and removal of the DynamoDB table of an instance, and the registration of stores in it."""

from __future__ import annotations

import hashlib
import re
from typing import Any

from deployer.errors import NotFound, OutcomeUnknown, Refused
from deployer.platform.storage.envelope import FORMAT
from deployer.platform.system.clock import Clock
from deployer.state.backends.dynamodb.items import ITEM, STORE, TABLE_SCHEMA, key, number, text
from deployer.state.backends.dynamodb.requests import InUse, Requests

_PATIENCE = 120.0  # seconds; AWS creates a table in about ten seconds
_PAUSE = 0.5


def table_name(root: str, instance: str = "") -> str:
    """Returns the name of an instance's table if the spec does not name one. It is different for each root."""
    last = instance or root.rstrip("/").rpartition("/")[2]
    readable = re.sub(r"[^A-Za-z0-9_.-]", "-", last)[:100]
    return f"deployer-{readable}-{hashlib.blake2b(root.rstrip('/').encode(), digest_size=4).hexdigest()}"


def ensure_table(requests: Requests, clock: Clock) -> bool:
    """Creates the table if it does not exist, and waits until it is ready. Returns whether it was created.

    Raises Refused for the table of another application, and OutcomeUnknown if the table is not ready in time.
    """
    made, deadline = False, clock.monotonic() + _PATIENCE
    while clock.monotonic() < deadline:
        try:
            found = requests.read("describe_table", TableName=requests.table.name)["Table"]
        except NotFound:
            try:
                requests.write("create_table", TableName=requests.table.name, **TABLE_SCHEMA)
                made = True
            except InUse:  # another process is creating the table
                clock.sleep(_PAUSE)
            continue
        if found["TableStatus"] in ("ACTIVE", "UPDATING"):
            _refuse_other(found, requests)
            return made
        clock.sleep(_PAUSE)
    raise OutcomeUnknown(
        f"the table is not ready after {_PATIENCE:g} s",
        where=str(requests.table),
        remedy="check it in AWS, and try again",
    )


def register_store(requests: Requests, store_id: str, root: str) -> None:
    """Registers a store in the table. New logs can be started only while the store is registered."""
    note = {**key(store_id, STORE), "root": text(root), "version": number(FORMAT)}
    requests.write("put_item", TableName=requests.table.name, Item=note)


def unregister_store(requests: Requests, store_id: str) -> None:
    requests.write("delete_item", TableName=requests.table.name, Key=key(store_id, STORE))


def registered_root(requests: Requests, store_id: str) -> str | None:
    """Returns the root of the store that is registered under this id; None if it is not registered."""
    answer = requests.read("get_item", TableName=requests.table.name, Key=key(store_id, STORE), ConsistentRead=True)
    return str(answer["Item"]["root"]["S"]) if "Item" in answer else None


def has_stores(requests: Requests) -> bool:
    """Returns whether any store is registered in the table. It may read the whole table."""
    start: dict[str, Any] = {}
    while True:
        answer = requests.read(
            "scan",
            TableName=requests.table.name,
            ConsistentRead=True,
            FilterExpression=f"{ITEM} = :store",
            ExpressionAttributeValues={":store": text(STORE)},
            **start,
        )
        if answer["Items"]:
            return True
        if "LastEvaluatedKey" not in answer:
            return False
        start = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}


def remove_table(requests: Requests) -> None:
    """Removes the table; does nothing when it does not exist or is being removed."""
    try:
        requests.write("delete_table", TableName=requests.table.name)
    except (NotFound, InUse):
        return


def _refuse_other(found: dict[str, Any], requests: Requests) -> None:
    indexes = {index["IndexName"]: index["KeySchema"] for index in found.get("LocalSecondaryIndexes", ())}
    wanted = {index["IndexName"]: index["KeySchema"] for index in TABLE_SCHEMA["LocalSecondaryIndexes"]}
    if found["KeySchema"] != TABLE_SCHEMA["KeySchema"] or any(
        indexes.get(name) != keys for name, keys in wanted.items()
    ):
        raise Refused(
            "this table was not made for a state store: its keys or indexes differ",
            where=str(requests.table),
            remedy="name another by `table` in the instance's `state`, or make it as docs/state-format.md says",
        )
