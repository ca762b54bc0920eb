"""A project in a temporary folder whose program is text of the test, and the file provider behind it."""

from __future__ import annotations

import json
import os
import stat
import sys
import textwrap
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from deployer.engine import Event, PlanResult, Project, StackRef, UpResult, choose_engine, read_project
from deployer.engine.project.backend_url import open_backend
from deployer.platform.storage.objects import ObjectStore
from tests.engine.provider_files import FileProvider, files_of, log_of
from tests.engine.sdk_client import SdkClient

PRELUDE = """
import pulumi

class File(pulumi.CustomResource):
    size: pulumi.Output[int]
    path: pulumi.Output[str]
    content: pulumi.Output[str]

    def __init__(self, res, opts=None, **props):
        props.setdefault("name", res)
        props.setdefault("content", None)
        props.setdefault("size", None)
        props.setdefault("path", None)
        super().__init__("files:index:File", res, props, opts)

Opts = pulumi.ResourceOptions
"""
CHECKPOINT = "stacks/demo/dev.json"
REPOSITORY = Path(__file__).parents[2]
SCHEMAS = Path(__file__).parent / "pulumi_state_schema"
#: fields that the CLI writes and the published schema does not list
UNLISTED = {"retainOnDelete", "deletedWith", "replaceWith", "ignoreChanges", "replaceOnChanges", "replacementTrigger"}


@dataclass
class Lab:
    """One project with one stack."""

    dir: Path
    in_process: bool = True
    at: str = "file://."  #: where its state is
    events: list[Event] = field(default_factory=list)
    kind: type[FileProvider] = FileProvider

    @property
    def root(self) -> Path:
        return self.dir / "root"

    def program(self, text: str) -> None:
        (self.dir / "stacks").mkdir(exist_ok=True)
        (self.dir / "stacks" / "__main__.py").write_text(PRELUDE + textwrap.dedent(text))

    def project(self) -> Project:
        return read_project(self.dir)

    def stack(self) -> StackRef:
        return StackRef(self.project(), "dev")

    def engine(self) -> Any:
        providers = {"files": lambda: SdkClient(self.kind(self.root))} if self.in_process else {}
        return choose_engine(self.project(), "embedded", providers)

    def up(self, text: str | None = None, **options: Any) -> UpResult:
        if text is not None:
            self.program(text)
        self.events.clear()
        try:
            result: UpResult = self.engine().up(self.stack(), on_event=self.events.append, **options)
        finally:
            check_state(self)
        return result

    def preview(self, text: str | None = None, **options: Any) -> PlanResult:
        if text is not None:
            self.program(text)
        before = self.objects.tagged(CHECKPOINT)
        result: PlanResult = self.engine().preview(self.stack(), **options)
        assert before == self.objects.tagged(CHECKPOINT)
        return result

    def destroy(self, **options: Any) -> UpResult:
        try:
            result: UpResult = self.engine().destroy(self.stack(), **options)
        finally:
            check_state(self)
        return result

    @property
    def objects(self) -> ObjectStore:
        """What the backend holds, whatever it is."""
        return open_backend(self.project()).objects

    @property
    def checkpoint(self) -> Path:
        """Of a backend that is a folder."""
        return self.dir / ".pulumi" / "stacks" / "demo" / "dev.json"

    def resources(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.deployment().get("resources", [])
        return found

    def deployment(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.objects.get(CHECKPOINT))["checkpoint"]["latest"]
        return found

    def resource(self, name: str) -> dict[str, Any]:
        return next(doc for doc in self.resources() if doc["urn"].endswith(f"::{name}") and not doc.get("delete"))

    def log(self) -> list[str]:
        return log_of(self.root)

    def files(self) -> dict[str, str]:
        return files_of(self.root)

    def clear_log(self) -> None:
        (self.root / "log").unlink(missing_ok=True)

    def install_plugin(self, module: str = "provider_files") -> None:
        """A provider as an executable that Pulumi.yaml names."""
        folder = self.dir / "bin"
        folder.mkdir(exist_ok=True)
        script = folder / "pulumi-resource-files"
        script.write_text(
            f"#!/bin/sh\nexport FILES_ROOT='{self.root}' PYTHONPATH='{REPOSITORY}'\n"
            f"exec '{sys.executable}' -m tests.engine.{module} \"$@\"\n"
        )
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        with (self.dir / "Pulumi.yaml").open("a") as file:
            file.write("plugins:\n  providers:\n    - name: files\n      path: bin\n")
        self.in_process = False


def check_state(lab: Lab) -> None:
    """Every run leaves a checkpoint in dependency order, no journal, no lock, and documents that fit the schemas."""
    assert not [path for path in lab.objects.list("") if ".journal" in path or path.startswith("locks/")]
    deployment = lab.deployment()
    seen: set[str] = set()
    for doc in deployment.get("resources", ()):
        needed = {doc.get("parent"), doc.get("provider", "").rpartition("::")[0], *doc.get("dependencies", ())}
        assert needed - {None, ""} <= seen, doc["urn"]
        seen.add(doc["urn"])
    check_schema(deployment)


def check_schema(deployment: dict[str, Any]) -> None:
    """Holds a deployment against Pulumi's published schemas."""
    resources = [
        {key: value for key, value in doc.items() if key not in UNLISTED} for doc in deployment.get("resources", ())
    ]
    schema_validator().validate({"version": 3, "deployment": {**deployment, "resources": resources}})


@cache
def schema_validator() -> Any:
    """Of Pulumi's published schemas."""
    import jsonschema
    import referencing

    docs = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(SCHEMAS.glob("*.json"))]
    registry: Any = referencing.Registry().with_resources(
        [(doc["$id"], referencing.Resource.from_contents(doc)) for doc in docs]
    )
    schema = next(doc for doc in docs if doc["$id"].endswith("deployments.json"))
    return jsonschema.Draft202012Validator(schema, registry=registry)


def lab_in(folder: Path, at: str = "file://.") -> Lab:
    """A project whose program is still to be written, with its state at that backend."""
    folder.mkdir(exist_ok=True)
    (folder / "Pulumi.yaml").write_text(f"name: demo\nruntime: python\nmain: stacks\nbackend:\n  url: {at}\n")
    return Lab(folder, at=at)


@pytest.fixture
def passphrase(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE_FILE", raising=False)
    monkeypatch.delenv("PULUMI_BACKEND_URL", raising=False)
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "correct horse")


@pytest.fixture
def lab(tmp_path: Path, passphrase: None) -> Lab:
    return lab_in(tmp_path)


@pytest.fixture(params=["folder", pytest.param("s3", marks=pytest.mark.full)])
def any_lab(request: pytest.FixtureRequest, tmp_path: Path, passphrase: None) -> Lab:
    """One with its state in a folder, and one with its state in a bucket."""
    return lab_in(tmp_path, backend_url_of(request, str(request.param)))


def backend_url_of(request: pytest.FixtureRequest, kind: str) -> str:
    """A backend where nothing is yet. The bucket's says all but credentials itself, as Pulumi's URLs can."""
    if kind == "folder":
        return "file://."
    name = request.getfixturevalue("bucket")
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3", "").removeprefix("http://")
    place = f"s3://{name}/{uuid.uuid4().hex[:12]}/states"
    if not endpoint:
        return place
    return f"{place}?region=eu-central-1&endpoint={endpoint}&disableSSL=true&s3ForcePathStyle=true&awssdk=v2"


Programs = Callable[[str], None]
