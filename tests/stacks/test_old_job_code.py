"""Code of jobs goes when nothing has named it for 90 days, however old it is, and never while something names it."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Sequence

import boto3
import pytest

from deployer.compute.old_job_code import DAYS, RECORD, Removed, remove_old_code
from deployer.compute.running.published_clusters import FILE
from tests.cli.conftest import Deployer
from tests.stacks.conftest import MakeProject, bucket_of

pytestmark = pytest.mark.full

DAY = 86_400_000
OLD, NEW, OTHER = ("a" * 64, "b" * 64, "c" * 64)
CLUSTER = "clusters:\n  small: {kind: emr-serverless, release: emr-spark-8.0.0}\n"


def _names(*codes: str) -> str:
    """The state of a stack whose outputs, or schedules, name that code."""
    inner = json.dumps({"EntryPoint": [f"s3://lakes/demo/_jobs/{code}/ingest.py" for code in codes]})
    return json.dumps({"deployment": {"resources": [{"inputs": {"target": {"input": inner}}}]}})


class Code:
    """Objects below a root of their own in moto's S3."""

    def __init__(self) -> None:
        self._s3, self._bucket = boto3.client("s3"), f"code-{uuid.uuid4().hex[:12]}"
        self._s3.create_bucket(Bucket=self._bucket, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
        self.root, self.start = f"s3://{self._bucket}/demo", round(time.time() * 1000) + 1000

    def put(self, path: str, body: str = "code") -> None:
        self._s3.put_object(Bucket=self._bucket, Key=f"demo/{path}", Body=body.encode())

    def paths(self) -> list[str]:
        listed = self._s3.list_objects_v2(Bucket=self._bucket, Prefix="demo/").get("Contents", ())
        return [each["Key"].removeprefix("demo/") for each in listed if each["Key"] != f"demo/{RECORD}"]

    def after(self, days: int, stack: str) -> Removed:
        """What an `up` so many days after the upload removes."""
        return remove_old_code(self.root, lambda: stack, self.start + days * DAY)


@pytest.fixture
def code(aws: str) -> Code:
    found = Code()
    for each in (OLD, NEW):
        found.put(f"_jobs/{each}/ingest.py")
        found.put(f"_jobs/{each}/deployer.zip")
    return found


def of(*codes: str) -> list[str]:
    return [f"_jobs/{each}/{name}" for each in codes for name in ("deployer.zip", "ingest.py")]


def test_code_that_is_named_stays_however_old_it_is_and_other_code_goes_after_its_days(code: Code) -> None:
    for days in (0, 50, 200):
        assert code.after(days, _names(OLD, NEW)) == Removed()
    assert code.after(300, _names(NEW)) == Removed()  # the last day on which it may have been used
    assert code.after(300 + DAYS - 1, _names(NEW)) == Removed() and code.paths() == of(OLD, NEW)
    assert code.after(300 + DAYS, _names(NEW)) == Removed(2, 8)
    assert code.paths() == of(NEW)
    assert code.after(1000, _names(NEW)) == Removed() and code.paths() == of(NEW)


def test_code_that_is_named_again_has_all_its_days_again(code: Code) -> None:
    code.after(0, _names(NEW))
    code.after(80, _names(NEW, OLD))
    assert code.after(100, _names(NEW)) == code.after(100 + DAYS - 1, _names(NEW)) == Removed()
    assert code.after(100 + DAYS, _names(NEW)).objects == 2


def test_what_python_programs_read_names_code_too(code: Code) -> None:
    code.put(FILE, _names(OLD))
    for days in (0, 100, 1000):
        assert code.after(days, _names(NEW)) == Removed()
    assert code.paths() == [*of(OLD, NEW), FILE]


@pytest.mark.parametrize("stack", ["", json.dumps({"version": 3, "deployment": None}), _names(OTHER)])
def test_a_stack_that_names_none_of_the_code_removes_none(code: Code, stack: str) -> None:
    code.after(0, _names(NEW))
    assert code.after(1000, stack) == Removed() and code.paths() == of(OLD, NEW)


@pytest.mark.parametrize("damaged", ["", "{", "[1]", f'{{"{OLD}": "long ago"}}', f'{{"{OLD}": true}}', "\x00"])
def test_a_record_that_is_lost_or_damaged_counts_from_now(code: Code, damaged: str) -> None:
    code.after(0, _names(NEW))
    code.put(RECORD, damaged)
    assert code.after(100, _names(NEW)) == Removed() and code.paths() == of(OLD, NEW)
    assert code.after(100 + DAYS, _names(NEW)).objects == 2


def test_an_object_that_was_uploaded_lately_stays_whatever_the_record_says(code: Code) -> None:
    code.put(RECORD, json.dumps({OLD: 0}))
    assert code.after(DAYS - 1, _names(NEW)) == Removed()
    assert code.after(DAYS, _names(NEW)).objects == 2


def test_other_objects_are_left(code: Code) -> None:
    kept = ["_jobs/notes.txt", f"_jobs/{OTHER[:-1]}/ingest.py", f"_jobs/{OTHER}/deep/er.py", f"air/{OTHER}/ingest.py"]
    for path in kept:
        code.put(path)
    for days in (0, 1000):
        code.after(days, _names(NEW))
    assert set(kept) < set(code.paths())


def test_up_counts_from_the_apply_that_no_longer_names_the_code(on_aws: MakeProject, deployer: Deployer) -> None:
    project = on_aws(CLUSTER, tables="")
    s3, bucket = boto3.client("s3"), bucket_of(project)

    def keys() -> Sequence[str]:
        listed = s3.list_objects_v2(Bucket=bucket, Prefix="demo/_jobs/").get("Contents", ())
        return [each["Key"].removeprefix("demo/") for each in listed]

    assert deployer("up", "--yes").code == 0
    current = keys()
    assert FILE in current and len(current) > 3 and RECORD not in current
    s3.put_object(Bucket=bucket, Key=f"demo/_jobs/{OLD}/ingest.py", Body=b"earlier code")
    before = round(time.time() * 1000)
    assert deployer("up", "--yes").code == 0
    record = json.loads(s3.get_object(Bucket=bucket, Key=f"demo/{RECORD}")["Body"].read())
    assert record.keys() == {OLD} and before <= record[OLD] <= round(time.time() * 1000)
    assert deployer("stack", "export", "state.json").code == 0
    state = (project / "state.json").read_text(encoding="utf-8")
    later = round(time.time() * 1000) + (DAYS + 1) * DAY
    assert remove_old_code(f"s3://{bucket}/demo", lambda: state, later) == Removed(1, 12)
    assert sorted(keys()) == sorted([*current, RECORD])
    assert deployer("preview", "--exit-code").code == 0
