"""moto as a process of its own: `-m tests.state.aws_server_process` prints its port and ends when its input does.

moto's server handles requests in threads, and its DynamoDB is not atomic there: a transaction checks each item and then
writes it with nothing to keep others out in between, and one that fails puts a copy of the *whole table* back that it
made when it began, so that what others wrote meanwhile is lost (moto 5.2, dynamodb/models/__init__.py). Real DynamoDB
is serializable. So requests are let in one at a time here, and a transaction that fails restores only its own items,
which also spares the copy of the table for each commit. A query sorts all items of a table, and compares each with the
key that it asks for: a third of the server's time with what a run of the tests leaves there. Here it sees the items of
its key alone. And SQS does not wait for messages that may still come: all requests would wait with it. `--unlocked`
runs moto as it is.
"""

from __future__ import annotations

import copy
import json
import sys
import threading
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import flask
from moto import backends
from moto.dynamodb import responses
from moto.dynamodb.models import DynamoDBBackend
from moto.dynamodb.models.dynamo_type import DynamoType
from moto.dynamodb.models.table import Table
from moto.emrserverless.models import EMRServerlessBackend
from moto.iam.access_control import PermissionResult
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.s3.models import FakeBucket
from moto.sqs.models import Message, SQSBackend
from werkzeug.serving import WSGIRequestHandler, make_server

from tests.stacks.policies import Call, is_denied
from tests.state import aws_server_emr, aws_server_events, aws_server_runs, aws_server_settings

_transact = DynamoDBBackend.transact_write_items
_query = Table.query
_receive = SQSBackend.receive_message
_create_application = EMRServerlessBackend.create_application
_lock = threading.Lock()
#: Headers that conditions know by other names.
_ENCRYPTION = {
    "x-amz-server-side-encryption": "s3:x-amz-server-side-encryption",
    "x-amz-server-side-encryption-aws-kms-key-id": "s3:x-amz-server-side-encryption-aws-kms-key-id",
    "x-amz-server-side-encryption-customer-algorithm": "s3:x-amz-server-side-encryption-customer-algorithm",
}


class Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, type: str, message: str, *args: Any) -> None:
        pass


def transact_write_items(self: DynamoDBBackend, transact_items: list[dict[str, Any]]) -> None:
    """moto's own, with only the items of the transaction kept for the case that it fails."""
    before = []
    for operation in (operation for item in transact_items for operation in item.values()):
        table = self.get_table(operation["TableName"])
        keys = operation.get("Key") or {name: operation["Item"][name] for name in table.table_key_attrs}
        hash_key, range_key = self.get_keys_value(table, keys)
        before.append((table, hash_key, range_key, copy.deepcopy(table.items.get(hash_key, {}).get(range_key))))
    try:
        _transact(self, transact_items)
    except Exception:
        for table, hash_key, range_key, item in before:
            table.items[hash_key].pop(range_key, None)
            if item is not None:
                table.items[hash_key][range_key] = item
        raise


def query(self: Table, hash_key: DynamoType, *others: Any, **more: Any) -> tuple[list[Any], int, dict[str, Any] | None]:
    """moto's own, which looks only at the items with the key. It sorts them by the rest of their keys itself."""
    table: Any = self
    index_name = others[6]
    if index_name is None and table.range_key_attr:
        table.all_items = lambda: [*table.items.get(hash_key, {}).values()]
    try:
        return _query(self, hash_key, *others, **more)
    finally:
        vars(table).pop("all_items", None)


def receive_message(
    self: SQSBackend, queue_name: str, count: int, wait_seconds_timeout: int, *others: Any
) -> list[Message]:
    """moto's own, which does not wait."""
    return _receive(self, queue_name, count, 0, *others)


def get_permission(self: FakeBucket, action: str, resource: str) -> Any:
    """Whether the bucket's policy denies it, conditions included, of which moto takes no notice. Requests count as if
    they had come by TLS, and everybody as if of one organization."""
    context: dict[str, str] = {
        "aws:SecureTransport": "true",
        "s3:TlsVersion": "1.3",
        "aws:PrincipalOrgID": "o-a1b2c3d4e5",
    }
    for header, key in _ENCRYPTION.items():
        if value := flask.request.headers.get(header):
            context[key] = value
    denied = is_denied(Call(action, resource, context), json.loads(self.policy or b'{"Statement": []}'))
    return PermissionResult.DENIED if denied else PermissionResult.NEUTRAL


def create_application(self: EMRServerlessBackend, *, release_label: str, **about: Any) -> Any:
    """moto's own, which has not heard of EMR's releases for Spark 4."""
    known = release_label.replace("emr-spark-", "emr-")
    application = _create_application(self, release_label=known, **about)
    application.release_label = release_label
    return application


def one_at_a_time(application: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
    def locked(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if "HTTP_X_AMZ_CHECKSUM_SHA256" in environ:  # S3 takes the checksum for a sign of its kind, moto does not
            environ.setdefault("HTTP_X_AMZ_SDK_CHECKSUM_ALGORITHM", "SHA256")
        with _lock:
            return list(application(environ, start_response))

    return locked


def main(unlocked: bool) -> None:
    modules: Any = backends
    modules.list_of_moto_modules = cache(lambda listed=backends.list_of_moto_modules: tuple(listed()))
    application: Any = aws_server_runs.with_states(DomainDispatcherApplication(create_backend_app))
    bucket: Any = FakeBucket
    bucket.get_permission = get_permission
    aws_server_emr.extend()
    emr: Any = EMRServerlessBackend
    emr.create_application = create_application
    aws_server_runs.extend()
    aws_server_events.extend()
    aws_server_settings.extend()
    responses.TRANSACTION_MAX_ITEMS = 100  # of TransactGetItems, as AWS has it since 2022
    if not unlocked:
        patched: Any = DynamoDBBackend
        patched.transact_write_items = transact_write_items
        patched = Table
        patched.__deepcopy__ = lambda self, memo: self
        patched.query = query
        patched = SQSBackend
        patched.receive_message = receive_message
        application = one_at_a_time(application)
    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main("--unlocked" in sys.argv)
