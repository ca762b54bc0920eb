"""INGEST from S3: listed places, and SQS queues of event notifications. A bucket and a queue of moto's server."""

from __future__ import annotations

import json
import os
import signal
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import boto3
import pyarrow as pa
import pytest

from deployer.errors import DeployerError
from deployer.platform.storage.objects import ObjectInfo
from deployer.platform.storage.s3_objects import S3Objects
from deployer.platform.system.clock import Clock
from deployer.runs.records import fail_dead_runs
from deployer.runs.runner import RunRequest
from deployer.services.agent.watch import QUEUE_LOOK, Watch
from deployer.services.api.attachments import create_service
from deployer.services.kinds.ingest import ingest_files
from deployer.services.kinds.ingest.queue import files_named
from deployer.services.kinds.ingest.results import IngestFilesResult
from deployer.services.kinds.ingest.view import files_of
from deployer.services.registry import run_service
from deployer.state import open_store
from deployer.state.model.services import Service
from tests import forks
from tests.services.ingest.landings import SCHEMA
from tests.tables.lakes import Lake


class OnS3:
    """A lake on a disk, and a place in a bucket with a queue."""

    def __init__(self, folder: Path, bucket: str) -> None:
        self.lake = Lake(folder)
        self.lake.table(SCHEMA, ("id",), splits=())
        self.s3, self.sqs, self.bucket = boto3.client("s3"), boto3.client("sqs"), bucket
        self.prefix = f"landing {uuid.uuid4().hex[:8]}/trips"
        self.url = self.sqs.create_queue(QueueName=uuid.uuid4().hex)["QueueUrl"]

    @property
    def arn(self) -> str:
        named = self.sqs.get_queue_attributes(QueueUrl=self.url, AttributeNames=["QueueArn"])
        return str(named["Attributes"]["QueueArn"])

    def put(self, name: str, ids: Sequence[int], value: str = "v") -> str:
        key = f"{self.prefix}/{name}"
        text = "id,value\n" + "".join(f"{number},{value}\n" for number in ids)
        self.s3.put_object(Bucket=self.bucket, Key=key, Body=text.encode())
        return key

    def notify(self, *keys: str, event: str = "ObjectCreated:Put") -> None:
        """As S3 does: keys are encoded as in forms."""
        records = [
            {"eventName": event, "s3": {"bucket": {"name": self.bucket}, "object": {"key": quote_plus(key)}}}
            for key in keys
        ]
        self.send(json.dumps({"Records": records}))

    def send(self, body: str) -> None:
        self.sqs.send_message(QueueUrl=self.url, MessageBody=body)

    def run(self, files: str = "*.csv", **options: Any) -> IngestFilesResult:
        place = f"s3://{self.bucket}/{self.prefix}/{files}"
        return ingest_files(self.lake.root, "flights", {"files": place, **options})

    def left(self) -> int:
        """The messages in the queue, those that a run has taken and not deleted among them."""
        names: Any = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        found = self.sqs.get_queue_attributes(QueueUrl=self.url, AttributeNames=names)["Attributes"]
        return sum(map(int, found.values()))

    def ids(self) -> list[int]:
        return sorted(self.lake.open().scan().to_table()["id"].to_pylist())

    def files(self) -> Mapping[str, str]:
        found = files_of(self.lake.open().opened)
        return {each.path.rpartition("/")[2]: each.status for each in found}


@pytest.fixture
def place(tmp_path: Path, bucket: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[OnS3]:
    if "AWS_ENDPOINT_URL_S3" not in os.environ:
        pytest.skip("the tests run on AWS itself, where this would make queues")
    monkeypatch.setenv("AWS_ENDPOINT_URL_SQS", os.environ["AWS_ENDPOINT_URL_S3"])
    yield OnS3(tmp_path, bucket)


def test_objects_are_loaded_once_by_their_entity_tags(place: OnS3) -> None:
    for number in range(5):
        place.put(f"{number}.csv", [number])
    place.put("none.txt", [9])
    place.put("deep/5.csv", [9])
    done = place.run()
    assert (done.files, done.commits) == (5, 1) and place.ids() == [0, 1, 2, 3, 4]
    place.put("0.csv", [0])  # again, with the same content: the same tag
    assert place.run().status == "SKIPPED"
    place.put("0.csv", [7])
    place.put("5.csv", [5])
    done = place.run()
    assert (done.files, done.changed) == (1, 1) and place.ids() == [0, 1, 2, 3, 4, 5]
    assert place.files()["0.csv"] == "CHANGED"


@pytest.mark.parametrize("by", ["listing", "queue"])
def test_several_places_on_s3_and_on_the_disk(place: OnS3, tmp_path: Path, by: str) -> None:
    keys = [place.put(name, [number]) for number, name in enumerate(("a/0.csv", "b/1.csv", "c/2.csv"))]
    (tmp_path / "landing").mkdir()
    (tmp_path / "landing" / "3.csv").write_text("id,value\n3,v\n", encoding="utf-8")
    files = [f"s3://{place.bucket}/{place.prefix}/{name}" for name in ("a/*.csv", "b")]
    options = {"files": files, "queue": place.url} if by == "queue" else {"files": [*files, f"{tmp_path}/landing"]}
    place.notify(*keys)
    done = ingest_files(place.lake.root, "flights", options)
    assert (done.files, done.commits) == (2, 1) if by == "queue" else (3, 1)
    assert place.ids() == ([0, 1] if by == "queue" else [0, 1, 3])
    assert ingest_files(place.lake.root, "flights", options).status == "SKIPPED"


def test_small_parquet_objects_and_a_bad_one(place: OnS3) -> None:
    import pyarrow.parquet as pq

    for number in range(3):
        out = pa.BufferOutputStream()
        pq.write_table(pa.table([[number], ["v"]], schema=SCHEMA), out)
        key = f"{place.prefix}/{number}.parquet"
        place.s3.put_object(Bucket=place.bucket, Key=key, Body=out.getvalue().to_pybytes())
    place.s3.put_object(Bucket=place.bucket, Key=f"{place.prefix}/bad.parquet", Body=b"PAR1")
    done = place.run("*.parquet")
    assert (done.files, done.set_aside, done.commits) == (3, 1, 1) and place.ids() == [0, 1, 2]


def test_messages_name_files_and_go_once_these_are_committed(place: OnS3) -> None:
    keys = [place.put(f"{number}.csv", [number]) for number in range(12)]
    unnamed = place.put("unnamed.csv", [99])
    for key in keys[:10]:
        place.notify(key)
    place.notify(*keys[10:])
    done = place.run(queue=place.arn)
    assert (done.files, done.commits, done.messages, done.outside) == (12, 1, 11, 0)
    assert place.ids() == [*range(12)] and place.left() == 0
    assert place.run(queue=place.url).status == "SKIPPED"
    place.notify(unnamed)
    assert place.run(queue=place.url).files == 1


def test_duplicates_strangers_deleted_files_and_other_events(place: OnS3) -> None:
    key, gone = place.put("a b+c.csv", [1]), place.put("gone.csv", [2])
    outside = f"{place.prefix} else/x.csv"
    place.s3.put_object(Bucket=place.bucket, Key=outside, Body=b"id,value\n9,v\n")
    place.s3.delete_object(Bucket=place.bucket, Key=gone)
    for each in (key, key, gone, outside):
        place.notify(each)
    place.notify(key, event="ObjectRemoved:Delete")
    place.send(json.dumps({"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": place.bucket}))
    place.send("hello")
    place.send(json.dumps({"Records": [{"eventName": "ObjectCreated:Put"}]}))
    done = place.run(queue=place.arn)
    assert (done.files, done.messages, done.outside, done.gone, done.unknown) == (1, 6, 3, 1, 2)
    assert place.ids() == [1]
    assert place.left() == 2  # what is no notification stays
    place.notify(key)
    assert place.run(queue=place.arn).files == 0 and place.left() == 2


def test_messages_of_bad_and_changed_files_go_once_that_is_recorded(place: OnS3) -> None:
    bad, good = f"{place.prefix}/bad.csv", place.put("good.csv", [1])
    place.s3.put_object(Bucket=place.bucket, Key=bad, Body=b"id,value\nx,y\n")
    place.notify(bad)
    place.notify(good)
    done = place.run(queue=place.arn)
    assert (done.files, done.set_aside) == (1, 1) and place.left() == 0
    place.put("good.csv", [1, 2])
    place.notify(good)
    done = place.run(queue=place.arn)
    assert (done.files, done.changed, done.set_aside) == (0, 1, 1) and place.left() == 0
    place.put("bad.csv", [3])
    place.notify(bad)
    assert place.run(queue=place.arn).files == 1 and place.ids() == [1, 3]


def test_messages_stay_where_a_run_fails(place: OnS3) -> None:
    bad = f"{place.prefix}/bad.csv"
    place.s3.put_object(Bucket=place.bucket, Key=bad, Body=b"id,value\nx,y\n")
    place.notify(bad)
    with pytest.raises(DeployerError, match="cannot be loaded"):
        place.run(queue=place.arn, on_error="fail")
    assert place.left() == 1
    with pytest.raises(DeployerError, match="cannot be loaded"):  # the message is there at once
        place.run(queue=place.arn, on_error="fail")
    assert place.run(queue=place.arn).set_aside == 1 and place.left() == 0


def test_who_may_list_a_part_of_a_bucket_is_refused_what_is_gone(place: OnS3, monkeypatch: pytest.MonkeyPatch) -> None:
    """AWS answers 403 instead of 404 then, which moto's server does not."""
    there, gone = place.put("there.csv", [1]), place.put("gone.csv", [2])
    place.s3.delete_object(Bucket=place.bucket, Key=gone)
    about = S3Objects.about

    def refused(objects: S3Objects, path: str) -> ObjectInfo | None:
        if (found := about(objects, path)) is None:
            raise DeployerError("403 Forbidden", where=path, remedy="allow it")
        return found

    monkeypatch.setattr(S3Objects, "about", refused)
    place.notify(there, gone)
    assert place.run(queue=place.arn).files == 1 and place.left() == 0


def test_a_run_that_is_killed_before_it_deletes_its_messages(place: OnS3) -> None:
    keys = [place.put(f"{number}.csv", [number]) for number in range(3)]
    place.notify(*keys)
    files = f"s3://{place.bucket}/{place.prefix}/*.csv"
    environment = {
        **os.environ,
        "DEPLOYER_FAILPOINT": "services.ingest.before-delete-messages",
        "PYTHONPATH": str(Path(__file__).resolve().parents[3]),
    }
    worker = [sys.executable, "-m", "tests.crash.ingest_worker", place.lake.root, files, f"queue={place.arn}"]
    assert forks.run(worker, env=environment, text=True).returncode == -signal.SIGKILL
    assert place.ids() == [0, 1, 2] and place.left() == 1
    with closing(open_store(place.lake.root)) as store:
        [table_id] = store.instance().tables
        fail_dead_runs(store, table_id, Clock().now() + 10**9)
    place.notify(*keys)  # as when the message comes again
    assert place.run(queue=place.arn).files == 0
    assert place.ids() == [0, 1, 2]


def test_an_agent_runs_it_when_messages_wait(place: OnS3) -> None:
    table_id = place.lake.open().opened.entry.table_id
    options = {"files": f"s3://{place.bucket}/{place.prefix}/*.csv", "queue": place.arn}
    trigger = {"schedule": "0 0 1 1 *"}
    create_service(place.lake.store, table_id, Service("INGEST", "AUTOMATIC", trigger, options))
    watch, now = Watch(place.lake.store, place.lake.root), Clock().now()
    assert watch.look(now).tables[table_id].due == ()
    place.notify(place.put("a.csv", [1]))
    assert watch.look(now).tables[table_id].due == ()  # queues are not asked at every look
    [due] = watch.look(now + QUEUE_LOOK).tables[table_id].due
    assert (due.service, due.cause) == ("INGEST", "trigger: 1 message in its queue")
    run_service(place.lake.root, "flights", "INGEST", asked=RunRequest(new_id=due.run_id))
    assert place.ids() == [1]
    assert watch.look(now + 2 * QUEUE_LOOK).tables[table_id].due == ()
    place.sqs.delete_queue(QueueUrl=place.url)
    seen = watch.look(now + 3 * QUEUE_LOOK).tables[table_id]
    assert seen.due == () and not seen.trouble


def test_a_queue_that_is_not_there(place: OnS3) -> None:
    with pytest.raises(DeployerError, match="SQS returned no messages"):
        place.run(queue=f"{place.arn}-2")


RECORD = {"eventName": "ObjectCreated:Put", "s3": {"bucket": {"name": "b"}, "object": {"key": "a+b%2Bc"}}}


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (json.dumps({"Records": [RECORD]}), ["s3://b/a b+c"]),
        (json.dumps({"Type": "Notification", "Message": json.dumps({"Records": [RECORD]})}), ["s3://b/a b+c"]),
        (
            json.dumps(
                {
                    "source": "aws.s3",
                    "detail-type": "Object Created",
                    "detail": {"bucket": {"name": "b"}, "object": {"key": "a+b"}},
                }
            ),
            ["s3://b/a+b"],
        ),
        (json.dumps({"source": "aws.s3", "detail-type": "Object Deleted", "detail": {}}), []),
        (json.dumps({"Records": [{**RECORD, "eventName": "ObjectRemoved:Delete"}]}), []),
        (json.dumps({"Event": "s3:TestEvent"}), []),
        (json.dumps({"Records": [{"eventName": "ObjectCreated:Put", "s3": 1}]}), None),
        (json.dumps({"Records": 1}), None),
        (json.dumps([1]), None),
        ("{", None),
        ("[" * 100_000, None),
        ("", None),
    ],
)
def test_what_a_message_names(body: str, named: list[str] | None) -> None:
    assert files_named(body) == named
