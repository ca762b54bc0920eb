"""Opening, creation and removal of the state store of an instance at `s3://bucket/prefix`.

`ROOT/_state/store.json` names the DynamoDB table of the logs and its region. Every process that knows the root finds
the logs, whatever region its own settings have.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from botocore.exceptions import BotoCoreError

from deployer.errors import Corrupt, NotFound, Refused
from deployer.platform.aws.session import aws_author, aws_session, setting_missing
from deployer.platform.storage.envelope import FORMAT, RECOVERY, refuse_newer
from deployer.platform.storage.objects import Missing
from deployer.platform.storage.s3_objects import S3Objects
from deployer.platform.system.clock import Clock
from deployer.state.backends.dynamodb.backend import DynamoBackend
from deployer.state.backends.dynamodb.reads import DynamoReads
from deployer.state.backends.dynamodb.requests import Requests, TableAddress
from deployer.state.backends.dynamodb.table import (
    ensure_table,
    has_stores,
    register_store,
    registered_root,
    remove_table,
    table_name,
    unregister_store,
)
from deployer.state.backends.protocol import REMOVED
from deployer.state.model.entities import INSTANCE_LOG
from deployer.state.model.names import is_log_name
from deployer.state.reader import StateReader
from deployer.state.records.files import S3Records
from deployer.state.snapshots.retention import SnapshotPolicy
from deployer.state.store import StateStore

_FOLDER = "_state"
_SIGN = "store.json"
INLINE_PARTS = 128 * 1024  #: bytes of small files of a snapshot that its pointer contains, which saves requests


@dataclass(frozen=True, slots=True)
class _Sign:
    """The content of store.json. `made_table`: deployer created the table and removes it with the last store in it."""

    store_id: str
    table: TableAddress
    made_table: bool


def open_on_s3(root: str, clock: Clock | None = None, policy: SnapshotPolicy | None = None) -> StateStore:
    """Returns the store at `root`, with one request. Raises NotFound when it does not exist."""
    sign = _read_sign(root)
    if sign is None:
        raise _no_store(root)
    return _store(root, sign, clock, policy)


def open_on_s3_to_read(root: str) -> StateReader:
    """Returns the store at `root`, opened for reading only. It never sends a request that writes.

    Raises NotFound when the store does not exist.
    """
    sign = _read_sign(root)
    if sign is None:
        raise _no_store(root)
    objects = S3Objects(f"{root.rstrip('/')}/{_FOLDER}/snapshots")
    return StateReader(DynamoReads(Requests(sign.table), objects, sign.store_id), objects)


def create_on_s3(root: str, options: Mapping[str, object], instance: str) -> StateStore:
    """Returns the store at `root`, and creates it if it does not exist.

    `options` may have the `table`, `region` and `endpoint` of DynamoDB.
    """
    sign = _read_sign(root)
    if sign is not None and _removal_begun(root, sign):
        remove_on_s3(root)
        sign = None
    while sign is None:
        sign = _made(root, options, instance) or _read_sign(root)
    return _store(root, sign)


def remove_on_s3(root: str) -> None:
    """Removes the store at `root` permanently; does nothing when it does not exist.

    Raises Refused if `store.json`, which is untrusted, names the store of another root. The DynamoDB table is removed
    only if deployer created it and no other store is in it.
    """
    sign = _read_sign(root)
    if sign is None:
        return
    requests = Requests(sign.table)
    left = True
    try:
        _refuse_others(root, sign, requests)
        store = _store(root, sign)
        for log in dict.fromkeys([INSTANCE_LOG, *store.logs()]):
            store.remove_log(log)
        unregister_store(requests, sign.store_id)
        store.close()
        left = sign.made_table and has_stores(requests)
    except NotFound:  # the table does not exist any more
        pass
    objects = _objects(root)
    objects.delete([path for path in objects.list("") if path != _SIGN])
    objects.delete([_SIGN])  # before the table, because a store.json that names a missing table would be an error
    if sign.made_table and not left:
        remove_table(requests)
    requests.close()


def put_sign_aside(root: str) -> str | None:
    """Renames `store.json`, so that another store can be made. Returns the new address; None if the file does not
    exist."""
    objects = _objects(root)
    try:
        data = objects.get(_SIGN)
    except Missing:
        return None
    aside = f"{_SIGN}.damaged-{uuid.uuid4().hex[:12]}"
    objects.put(aside, data)
    objects.delete([_SIGN])
    return f"{root.rstrip('/')}/{_FOLDER}/{aside}"


def _refuse_others(root: str, sign: _Sign, requests: Requests) -> None:
    """Raises Refused unless the DynamoDB table records this root for the store, or a removal of the store began."""
    noted = registered_root(requests, sign.store_id)
    if noted is None and _removal_begun(root, sign):
        return
    if noted is None or noted.rstrip("/") != root.rstrip("/"):
        what = f"that of {noted}" if noted is not None else "not noted in it"
        raise Refused(
            f"the state store that {_FOLDER}/{_SIGN} names in {sign.table} is {what}, so it is not removed",
            where=root,
            remedy=f"check who wrote {root.rstrip('/')}/{_FOLDER}/{_SIGN}",
        )


def _made(root: str, options: Mapping[str, object], instance: str) -> _Sign | None:
    """Makes a new store and returns the content of its store.json; None when another process made one first."""
    region = str(options["region"]) if "region" in options else _own_region(root)
    endpoint = str(options["endpoint"]) if "endpoint" in options else None
    table = TableAddress(str(options.get("table") or table_name(root, instance)), region, endpoint)
    requests = Requests(table)
    objects = _objects(root)
    objects.list("snapshots")  # fails for an unusable bucket before a table is made
    made = ensure_table(requests, Clock())
    sign = _Sign(uuid.uuid4().hex, table, made)
    register_store(requests, sign.store_id, root)
    if not objects.put_new(_SIGN, _to_json(sign)):
        unregister_store(requests, sign.store_id)
        return None
    return sign


def _store(root: str, sign: _Sign, clock: Clock | None = None, policy: SnapshotPolicy | None = None) -> StateStore:
    clock, objects = clock or Clock(), S3Objects(f"{root.rstrip('/')}/{_FOLDER}/snapshots")
    backend = DynamoBackend(Requests(sign.table, clock), objects, sign.store_id)
    author = cache(partial(aws_author, sign.table.region))
    return StateStore(
        backend, objects, clock, policy, inline_parts=INLINE_PARTS, author=author, records=S3Records(root)
    )


def _no_store(root: str) -> NotFound:
    return NotFound("there is no state store", where=root, remedy="create the instance first: deployer up")


def _removal_begun(root: str, sign: _Sign) -> bool:
    """Returns whether a removal of the store began and did not end. Raises NotFound when the table does not exist."""
    requests = Requests(sign.table)
    try:
        return DynamoReads(requests, _objects(root), sign.store_id).head(INSTANCE_LOG).floor == REMOVED
    finally:
        requests.close()


def _objects(root: str) -> S3Objects:
    return S3Objects(f"{root.rstrip('/')}/{_FOLDER}")


def _own_region(root: str) -> str | None:
    try:
        return aws_session().region_name
    except BotoCoreError as error:
        raise setting_missing(error, root) from error


def _read_sign(root: str) -> _Sign | None:
    where = f"{root.rstrip('/')}/{_FOLDER}/{_SIGN}"
    try:
        data = _objects(root).get(_SIGN)
    except Missing:
        return None
    try:
        found: dict[str, Any] = json.loads(data)
        refuse_newer(found["format"], where)
        names = [found["store"], found["table"], found.get("region"), found.get("endpoint")]
        if not all(isinstance(each, str | None) for each in names) or not is_log_name(str(found["store"])):
            raise ValueError("a name in it is invalid")
        table = TableAddress(found["table"], found.get("region"), found.get("endpoint"))
        return _Sign(found["store"], table, found["made_table"] is True)
    except (AttributeError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise Corrupt(f"it has an unexpected structure: {error!r}", where=where, remedy=RECOVERY) from None


def _to_json(sign: _Sign) -> bytes:
    document = {
        "format": FORMAT,
        "store": sign.store_id,
        "backend": "dynamodb",
        "table": sign.table.name,
        "region": sign.table.region,
        "endpoint": sign.table.endpoint,
        "made_table": sign.made_table,
    }
    return json.dumps({name: value for name, value in document.items() if value is not None}, indent=1).encode()
