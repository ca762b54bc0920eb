"""An AWS for the tests of this folder: moto's server, one process a worker, and projects whose lake is on its S3.

The code of jobs is packaged there as everywhere, of packages that have next to nothing in them.
"""

from __future__ import annotations

import http.client
import uuid
from collections.abc import Callable, Iterator
from http import HTTPStatus
from pathlib import Path

import pytest

from deployer.platform.isolation.process import prepare
from tests.aws_provider.forking import SOCKET, forked_providers
from tests.aws_provider.install import install_aws_provider
from tests.cli.conftest import Deployer, deployer  # noqa: F401 (fixture)
from tests.projects import make_project, table
from tests.state.aws_server import moto_server
from tests.wheelhouse import make_wheelhouse, trust_wheelhouse, use_wheelhouse

REGION = "eu-central-1"
#: Parts of pulumi_aws that programs with clusters and services load; the process that programs are forks of has them.
PARTS = ("budgets", "emr", "emrserverless", "glue", "kms", "scheduler", "sns", "sqs")


@pytest.fixture(scope="session")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The server's URL; the environment of this process and its children points there."""
    with pytest.MonkeyPatch.context() as environment, moto_server() as url, forked_providers() as providers:
        environment.setenv(SOCKET, providers)
        use_wheelhouse(make_wheelhouse(tmp_path_factory.mktemp("wheels")), environment)
        for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL_DYNAMODB", "AWS_REGION"):
            environment.delenv(name, raising=False)
        for name, value in (
            ("ENDPOINT_URL", url),
            ("ACCESS_KEY_ID", "test"),
            ("SECRET_ACCESS_KEY", "test"),
            ("DEFAULT_REGION", REGION),
        ):
            environment.setenv(f"AWS_{name}", value)
        prepare(*(f"pulumi_aws.{part}" for part in PARTS))
        yield url


def empty(aws: str) -> None:
    """Forgets all that is there: names that are one account's (roles, Glue databases) were perhaps another test's."""
    server = http.client.HTTPConnection(aws.removeprefix("http://"))
    server.request("POST", "/moto-api/reset")
    assert server.getresponse().status == HTTPStatus.OK
    server.close()


MakeProject = Callable[..., Path]


@pytest.fixture
def on_aws(aws: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeProject:
    """Makes a project with the table air.flights in a bucket of its own, nothing applied yet; the current folder.

    Nothing else is in the account.
    """
    empty(aws)

    def make(more: str = "", bucket: str = "", tables: str | None = None) -> Path:
        bucket = bucket or f"lakes-{uuid.uuid4().hex[:12]}"
        instance = f"kind: Instance\nname: demo\nroot: s3://{bucket}/demo\nengine: embedded\n{more}"
        flights = table("flights", "delay: int32") if tables is None else tables
        folder = make_project(tmp_path / bucket, {"demo.yaml": instance, "flights.yaml": flights})
        install_aws_provider(folder)
        trust_wheelhouse(folder)
        monkeypatch.chdir(folder)
        return folder

    return make


def bucket_of(project: Path) -> str:
    return project.name
