"""Roots, backends and stores for the tests: whatever takes one runs on SQLite and on DynamoDB with S3 alike."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import boto3
import pytest

from deployer.state import remove_store
from deployer.state.backend import Backend
from deployer.state.objects import ObjectStore

from .aws_server import moto_server
from .faults import Proxy, proxy
from .samples import backend_of, objects_at, store_at

#: Opens the backend that the test has, again: another client of the same logs.
OpenBackend = Callable[[], Backend]

#: Puts proxies between this process and the servers, DynamoDB's and S3's.
Interpose = Callable[..., tuple[Proxy, Proxy]]

REGION = "eu-central-1"


@pytest.fixture(scope="session")
def bucket(pytestconfig: pytest.Config) -> Iterator[str]:
    """A bucket, and a DynamoDB beside it, for which the environment of this process and its children is set.

    Both are moto's server, unless `--dynamodb-endpoint` and `--s3-endpoint` name others; `aws` is AWS itself.
    """
    chosen = {name: pytestconfig.getoption(f"--{name}-endpoint") for name in ("dynamodb", "s3")}
    with pytest.MonkeyPatch.context() as environment, moto_server() as moto:
        for name, endpoint in chosen.items():
            if endpoint != "aws":
                environment.setenv(f"AWS_ENDPOINT_URL_{name.upper()}", endpoint or moto)
        if "aws" not in chosen.values():
            for name, value in (("ACCESS_KEY_ID", "test"), ("SECRET_ACCESS_KEY", "test"), ("DEFAULT_REGION", REGION)):
                environment.setenv(f"AWS_{name}", value)
            environment.delenv("AWS_PROFILE", raising=False)
        client = boto3.client("s3")
        name = f"deployer-test-{uuid.uuid4().hex[:16]}"
        where = {"LocationConstraint": client.meta.region_name}
        client.create_bucket(
            Bucket=name, **({} if client.meta.region_name == "us-east-1" else {"CreateBucketConfiguration": where})
        )
        yield name
        for listed in client.get_paginator("list_objects_v2").paginate(Bucket=name):
            for each in listed.get("Contents", ()):
                client.delete_object(Bucket=name, Key=each["Key"])
        client.delete_bucket(Bucket=name)


@pytest.fixture
def on_s3(bucket: str, pytestconfig: pytest.Config) -> Iterator[str]:
    """A root on S3 where nothing is yet."""
    root = f"s3://{bucket}/{uuid.uuid4().hex[:12]}/lake"
    yield root
    if pytestconfig.getoption("--dynamodb-endpoint"):  # moto forgets all by itself
        remove_store(root)


@pytest.fixture(params=["sqlite", "dynamodb"])
def root(request: pytest.FixtureRequest) -> str:
    """A root of either kind, where nothing is yet."""
    if request.param == "sqlite":
        return str(request.getfixturevalue("tmp_path"))
    found: str = request.getfixturevalue("on_s3")
    return found


@pytest.fixture
def open_backend(root: str) -> Iterator[OpenBackend]:
    opened: list[Backend] = []

    def another() -> Backend:
        opened.append(backend_of(store_at(root)))
        return opened[-1]

    yield another
    for backend in opened:
        backend.close()


@pytest.fixture
def backend(open_backend: OpenBackend) -> Backend:
    return open_backend()


@pytest.fixture
def objects(root: str) -> ObjectStore:
    return objects_at(root)


@pytest.fixture
def interpose(on_s3: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Interpose]:
    with ExitStack() as stack:

        def begin(*arguments: object, **settings: float) -> tuple[Proxy, Proxy]:
            proxies = []
            for service in ("DYNAMODB", "S3"):
                target = os.environ.get(f"AWS_ENDPOINT_URL_{service}", "https://")
                if target.startswith("https"):
                    pytest.skip("needs servers without TLS")
                proxies.append(stack.enter_context(proxy(target, *arguments, **settings)))  # type: ignore[arg-type]
                monkeypatch.setenv(f"AWS_ENDPOINT_URL_{service}", proxies[-1].url)
            return proxies[0], proxies[1]

        yield begin
