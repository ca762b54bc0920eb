from __future__ import annotations

import uuid
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import ExitStack

import boto3
import pytest

from tests.compute.aws_runs import make_application
from tests.stacks.conftest import aws  # noqa: F401 (fixture)
from tests.state.faults import Fault, Proxy, proxy

PutBetween = Callable[..., Proxy]


@pytest.fixture
def application(aws: str) -> str:  # noqa: F811
    """An application of EMR Serverless without runs."""
    return make_application(f"app-{uuid.uuid4().hex[:8]}")


@pytest.fixture
def root(aws: str) -> str:  # noqa: F811
    """A root in a bucket that is there, where no lake is yet."""
    bucket = f"lakes-{uuid.uuid4().hex[:12]}"
    boto3.client("s3").create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
    return f"s3://{bucket}/lake"


@pytest.fixture
def faulty(aws: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[PutBetween]:  # noqa: F811
    """Puts a proxy before EMR and EMR Serverless; `only` are operations, of the latter POST (start) or GET (look)."""
    with ExitStack() as stack:

        def put(rates: Mapping[Fault, float], only: Container[str], seed: int = 1) -> Proxy:
            between = stack.enter_context(proxy(aws, rates, seed=seed))
            between.only = only
            for service in ("EMR", "EMR_SERVERLESS"):
                monkeypatch.setenv(f"AWS_ENDPOINT_URL_{service}", between.url)
            return between

        yield put
