"""The state store of an instance on S3: opening, making, removing it, large bodies, requests, and errors in words."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from typing import Any

import boto3
import pytest

from deployer.errors import Conflict, Corrupt, DeployerError, InvalidInput, NotFound, Refused
from deployer.platform.aws.session import aws_session
from deployer.platform.storage.s3_objects import S3Objects
from deployer.state import create_store, open_store, remove_store
from deployer.state.backends.dynamodb.backend import INLINE
from deployer.state.backends.dynamodb.items import TABLE_SCHEMA
from deployer.state.backends.dynamodb.requests import Requests, TableAddress
from deployer.state.backends.protocol import REMOVED, Record
from deployer.state.commits import Part
from deployer.state.log.requirements import JobNotDone, LogEmpty
from deployer.state.log.updates import FilesAdded, SetInstanceProperties
from deployer.state.model.entities import INSTANCE_LOG, File
from deployer.state.store import StateStore

from .faults import Fault, Interpose
from .samples import NEVER, TABLE, added, backend_of, creation, objects_at, store_at


def _keyed(fragment: int) -> File:
    """A file with keys as they are in practice, which do not shrink much."""
    low, high = (bytes((fragment * number * 2654435761 >> 7) % 256 for number in range(1, 25)) for _ in range(2))
    return File(fragment, "root", 421, 18_211 + fragment, low, high, (low[:8], low[8:]), (high[:8], high[8:]), True)


def _sign(root: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(S3Objects(f"{root}/_state").get("store.json"))
    return found


def _tables() -> list[str]:
    found: list[str] = boto3.client("dynamodb").list_tables()["TableNames"]
    return found


def test_a_store_is_made_once_and_opened_again(on_s3: str) -> None:
    create_store(on_s3, instance="nyc").commit(INSTANCE_LOG, [SetInstanceProperties({"name": "nyc"})], [LogEmpty()])
    assert create_store(f"{on_s3}/").instance().properties == {"name": "nyc"}
    assert open_store(on_s3).instance().version == 1
    sign = _sign(on_s3)
    assert (sign["format"], sign["backend"], sign["made_table"]) == (1, "dynamodb", True)
    assert sign["table"].startswith("deployer-nyc-")
    assert not sign.keys() & {"endpoint", "access_key_id", "secret_access_key", "token"}


def test_the_table_can_be_declared_and_shared(on_s3: str) -> None:
    name = f"shared-{on_s3.split('/')[3]}"
    roots = [f"{on_s3}/{number}" for number in range(2)]
    for number, root in enumerate(roots):
        create_store(root, {"table": name}).commit(INSTANCE_LOG, [SetInstanceProperties({"n": number})])
    assert [open_store(root).instance().properties["n"] for root in roots] == [0, 1]
    assert open_store(roots[0]).logs() == [INSTANCE_LOG]
    assert _sign(roots[0])["table"] == name
    remove_store(roots[1])
    assert name in _tables()  # the first made it
    assert open_store(roots[0]).instance().properties["n"] == 0
    remove_store(roots[0])
    assert name not in _tables()


@pytest.mark.full
def test_many_may_make_it_at_once(on_s3: str) -> None:
    start, failures = threading.Barrier(4), list[BaseException]()

    def make(number: int) -> None:
        start.wait()
        try:
            create_store(on_s3).commit(f"table-{number}", [creation()])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=make, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(open_store(on_s3).tables(f"table-{number}" for number in range(4))) == 4


def test_a_removed_store_is_gone_even_for_those_who_had_it_open(on_s3: str) -> None:
    late = create_store(on_s3)
    late.commit(INSTANCE_LOG, [SetInstanceProperties({"name": "nyc"})])
    late.commit(TABLE, [creation()])
    late.snapshot(TABLE)
    table = _sign(on_s3)["table"]
    remove_store(on_s3)
    remove_store(on_s3)
    assert S3Objects(on_s3).list("") == []
    assert table not in _tables()
    with pytest.raises(NotFound, match="there is no state store; create the instance first"):
        open_store(on_s3)
    assert create_store(on_s3).instance().version == 0
    for log, updates in ((TABLE, [added(1)]), (INSTANCE_LOG, [SetInstanceProperties({"a": 1})])):
        with pytest.raises(NotFound, match="was removed"):
            late.commit(log, updates)
    with pytest.raises(NotFound, match="its state store was removed"):
        late.commit("c" * 32, [creation()])
    with pytest.raises(NotFound, match="its state store was removed"):
        backend_of(late).put([Record("d" * 32, 1, "late", b"body")])
    assert open_store(on_s3).logs() == []


def test_a_removal_that_was_interrupted_is_ended_by_making_the_store_again(on_s3: str) -> None:
    store = create_store(on_s3)
    store.commit(INSTANCE_LOG, [SetInstanceProperties({"name": "nyc"})])
    store.remove_log(INSTANCE_LOG)
    assert create_store(on_s3).commit(INSTANCE_LOG, [SetInstanceProperties({"a": 1})], [LogEmpty()]).version == 1


def test_a_removal_of_a_log_that_was_interrupted_leaves_nothing_when_repeated(on_s3: str) -> None:
    store: Any = backend_of(create_store(on_s3))
    assert store.put([Record(TABLE, 1, "t", b"body")])
    assert store._raise_floor(TABLE, REMOVED)
    store.truncate(TABLE, REMOVED)
    assert not next(iter(store._reads.pages(TABLE, "entry/", "entry0")))


# Settings and servers that cannot be used: what is said, and what of it.
def _no_credentials(root: str, environment: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        environment.delenv(name, raising=False)
    environment.setenv("AWS_EC2_METADATA_DISABLED", "true")
    environment.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    environment.setenv("AWS_CONFIG_FILE", "/dev/null")


def _no_profile(root: str, environment: pytest.MonkeyPatch) -> None:
    environment.setenv("AWS_PROFILE", "nobody")


def _no_table(root: str, environment: pytest.MonkeyPatch) -> None:
    boto3.client("dynamodb").delete_table(TableName=_sign(root)["table"])


def _other_region(root: str, environment: pytest.MonkeyPatch) -> None:
    sign = _sign(root) | {"region": "us-west-2"}
    S3Objects(f"{root}/_state").put("store.json", json.dumps(sign).encode())


def _newer(root: str, environment: pytest.MonkeyPatch) -> None:
    S3Objects(f"{root}/_state").put("store.json", json.dumps(_sign(root) | {"format": 2}).encode())


def _cut_short(root: str, environment: pytest.MonkeyPatch) -> None:
    S3Objects(f"{root}/_state").put("store.json", b'{"format": 1')


WRONG: list[tuple[Callable[[str, pytest.MonkeyPatch], None], type[DeployerError], str]] = [
    (_no_credentials, DeployerError, r"s3://.*: no AWS credentials were found; run `aws configure`"),
    (_no_profile, DeployerError, r"s3://.*: .*profile \(nobody\) could not be found; set AWS_PROFILE"),
    (_no_table, NotFound, r"DynamoDB table deployer-.* in eu-central-1: the table does not exist; check the region"),
    (_other_region, NotFound, r"DynamoDB table deployer-.* in us-west-2: the table does not exist; check the region"),
    (_newer, Refused, r"store\.json: written by a newer deployer \(format 2\), this one reads up to 1; upgrade"),
    (_cut_short, Corrupt, r"store\.json: it has an unexpected structure: .*else restore"),
]


@pytest.mark.parametrize(("prepare", "error", "words"), WRONG, ids=[prepare.__name__ for prepare, *_ in WRONG])
def test_what_cannot_be_used_is_said_so(
    on_s3: str,
    prepare: Callable[[str, pytest.MonkeyPatch], None],
    error: type[DeployerError],
    words: str,
) -> None:
    create_store(on_s3).close()
    whole = S3Objects(f"{on_s3}/_state").get("store.json")
    with pytest.MonkeyPatch.context() as environment:
        prepare(on_s3, environment)
        with pytest.raises(error, match=words):
            open_store(on_s3).instance()
    S3Objects(f"{on_s3}/_state").put("store.json", whole)  # so that it can be removed


# What AWS refuses: by which of the two, how, and what is said.
REFUSED: list[tuple[int, Fault, str]] = [
    (0, "deny", r"DynamoDB table deployer-.*: access was denied.*; allow this identity the actions listed in docs/"),
    (0, "expired", r"DynamoDB table deployer-.*: AWS does not accept the credentials.*; renew them, or choose others"),
    (
        1,
        "deny",
        r"s3://.*: access to the bucket was denied \(GetObject of s3://.*\); check the credentials \(AWS_PROFILE\)",
    ),
    (1, "expired", r"s3://.*: the credentials have expired \(GetObject of s3://.*\); renew them, or choose others"),
    (1, "moved", r"s3://.*: the bucket is in another region; set AWS_REGION to the bucket's region"),
]


@pytest.mark.parametrize(
    ("service", "fault", "words"), REFUSED, ids=[f"{('DynamoDB', 'S3')[row[0]]} {row[1]}" for row in REFUSED]
)
def test_what_aws_refuses_is_said_at_once(
    on_s3: str, interpose: Interpose, service: int, fault: Fault, words: str
) -> None:
    create_store(on_s3).close()
    proxies = interpose({})
    proxies[service].rates = {fault: 1.0}
    with pytest.raises(DeployerError, match=words) as caught:
        open_store(on_s3).instance()
    looked_again = fault == "expired"  # somebody may have renewed them on disk
    assert proxies[service].faults[fault] == 1 + looked_again  # not tried again
    assert os.environ["AWS_SECRET_ACCESS_KEY"] not in str(caught.value).split()


@pytest.mark.parametrize("use", [open_store, create_store, remove_store])
def test_a_bucket_that_is_not_there_is_said_so(bucket: str, use: Callable[[str], object]) -> None:
    with pytest.raises(NotFound, match=r"s3://no-such-.*: the bucket does not exist; create the bucket"):
        use(f"s3://no-such-{bucket}/lake")


def test_a_table_of_somebody_else_is_refused(on_s3: str) -> None:
    name = f"theirs-{on_s3.split('/')[3]}"
    schema = {**TABLE_SCHEMA, "LocalSecondaryIndexes": None}
    schema["AttributeDefinitions"] = TABLE_SCHEMA["AttributeDefinitions"][:2]
    boto3.client("dynamodb").create_table(TableName=name, **{key: value for key, value in schema.items() if value})
    with pytest.raises(Refused, match="was not made for a state store: its keys or indexes differ; name another"):
        create_store(on_s3, {"table": name})
    assert S3Objects(on_s3).list("") == []
    boto3.client("dynamodb").delete_table(TableName=name)


def test_no_region_is_said_so(on_s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    with pytest.raises(DeployerError, match="no AWS region is set; set AWS_REGION, or `region` in the instance's"):
        create_store(on_s3)


def test_the_region_of_aws_region_counts_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-west-2")
    assert aws_session().region_name == "us-west-2"
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    assert aws_session().region_name == "eu-west-1"
    assert Requests(TableAddress("lakes"))._client().meta.region_name == "eu-west-1"


def _large(store: StateStore, version: int) -> Record:
    return Record(TABLE, version, f"t-{version}", bytes([version]) * (INLINE + 1))


def test_large_bodies_are_objects_and_go_with_their_entries(on_s3: str) -> None:
    store = store_at(on_s3)
    backend, objects = backend_of(store), objects_at(on_s3)
    records = [_large(store, version) for version in (1, 2, 3)]
    assert all(backend.put([record]) for record in records)
    assert not backend.put([Record(TABLE, 3, "lost", bytes(INLINE + 1))])
    assert [*backend.records(TABLE, 0)] == records
    assert [*backend.tails({TABLE: 1})[TABLE].records] == records[1:]
    assert len(objects.list(TABLE)) == 4
    store._retention._delete_below(TABLE, 2)
    assert sorted(int(path.split("/")[1].partition("-")[0]) for path in objects.list(TABLE)) == [3, 3]
    store.remove_log(TABLE)
    assert objects.list(TABLE) == []


@pytest.mark.full
def test_a_reader_whose_large_body_is_removed_under_it_reads_again(on_s3: str) -> None:
    store = store_at(on_s3, policy=NEVER)
    store.commit(TABLE, [creation()])
    files = tuple(_keyed(fragment) for fragment in range(10_000))
    store.commit(TABLE, [FilesAdded(files, 2)])
    assert any(path.endswith(".entry") for path in objects_at(on_s3).list(TABLE))
    reader: Any = open_store(on_s3)
    whole, passed = reader._backend._reads._record, list[int]()

    def removed_first(log: str, item: Any) -> Record:
        if not passed:
            passed.append(1)
            store.snapshot(TABLE)
            store._retention._backend.truncate(TABLE, 2)
            store._retention._delete_below(TABLE, 2)
        return whole(log, item)  # type: ignore[no-any-return]

    reader._backend._reads._record = removed_first
    assert reader.table(TABLE).files.count == 10_000
    assert passed


def test_a_missing_body_is_named(on_s3: str) -> None:
    backend = backend_of(store_at(on_s3))
    backend.put([_large(store_at(on_s3), 1)])
    objects_at(on_s3).delete(objects_at(on_s3).list(TABLE))
    for read in (lambda: backend.tails({TABLE: 0}), lambda: backend.records(TABLE, 0)):
        with pytest.raises(Corrupt, match=rf"log {TABLE}.*missing; `deployer state repair`"):
            read()


def test_a_table_that_was_restored_from_a_backup_is_noticed(on_s3: str) -> None:
    store = store_at(on_s3, policy=NEVER)
    store.commit(TABLE, [creation()])
    before = backend_of(store)._reads._requests.read(  # type: ignore[attr-defined]
        "scan", TableName=_sign(on_s3)["table"], ConsistentRead=True
    )["Items"]
    store.commit(TABLE, [added(1)])
    for item in before:
        boto3.client("dynamodb").put_item(TableName=_sign(on_s3)["table"], Item=item)
    with pytest.raises(Corrupt, match="it ends at version 1, and version 2 was there before; was the table restored"):
        store.table(TABLE)


def test_a_transaction_over_too_many_logs_is_refused_in_words(on_s3: str) -> None:
    store = store_at(on_s3)
    with pytest.raises(InvalidInput, match="one transaction over 50 logs; DynamoDB allows 49; commit in several"):
        store.commit_all([Part(f"table-{number}", [creation()]) for number in range(50)])
    states = store.commit_all([Part(f"table-{number}", [creation()]) for number in range(49)])
    assert len(states) == 49


def test_a_commit_is_one_write_request(on_s3: str, interpose: Interpose) -> None:
    dynamodb, s3 = interpose({})
    store = store_at(on_s3, policy=NEVER)
    store.commit(TABLE, [creation()])
    for requests in (dynamodb.requests, s3.requests):
        requests.clear()
    for start in range(0, 900, 300):
        files = tuple(_keyed(start + number) for number in range(300))
        store.commit(TABLE, [FilesAdded(files, start + 2, f"job-{start}", 300)], [JobNotDone(f"job-{start}")])
    assert dynamodb.requests == ["TransactWriteItems"] * 3
    assert s3.requests == []
    with pytest.raises(Conflict):
        store.commit(TABLE, [FilesAdded((_keyed(1),), 999)])


COLD = [
    ("a short log", 3, 0, ["Query"], ["GET"]),
    ("a small snapshot", 3, 3, ["Query"], ["GET"]),
    ("a large snapshot and a log", 6, 4, ["Query"], ["GET", "GET"]),
    ("a log of several hundred entries", 400, 0, ["Query"], ["GET"]),
]


@pytest.mark.thinned(2, to="full")
@pytest.mark.parametrize(
    ("commits", "snapshot_at", "to_dynamodb", "to_s3"), [row[1:] for row in COLD], ids=[row[0] for row in COLD]
)
def test_a_cold_open_is_at_most_three_requests(
    on_s3: str, interpose: Interpose, commits: int, snapshot_at: int, to_dynamodb: list[str], to_s3: list[str]
) -> None:
    store = store_at(on_s3, policy=NEVER)
    store.commit(TABLE, [creation()])
    each = 2_000 if snapshot_at > 3 else 1
    for number in range(commits):
        files = tuple(_keyed(each * number + file) for file in range(each))
        state = store.commit(TABLE, [FilesAdded(files, number + 2, f"job-{number}", each)])
        if number + 1 == snapshot_at:
            store.snapshot(TABLE)
    dynamodb, s3 = interpose({})
    opened = open_store(on_s3)
    assert opened.table(TABLE) == state
    assert (dynamodb.requests, s3.requests) == (to_dynamodb, to_s3)
    assert opened.table(TABLE) == state
    assert (dynamodb.requests, s3.requests) == ([*to_dynamodb, "Query"], to_s3)  # nothing new: one request
