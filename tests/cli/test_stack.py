"""Pulumi's state moved between backends, and what no stack takes in."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest

from deployer.platform.storage.s3_objects import S3Objects
from tests.cli.conftest import Deployer


def to_bucket(project: Path, bucket: str) -> str:
    """Says a new place in the bucket as the project's backend."""
    place = f"s3://{bucket}/{uuid.uuid4().hex[:12]}"
    settings = project / "Pulumi.yaml"
    settings.write_text(settings.read_text().replace("url: file://.", f"url: {place}"), encoding="utf-8")
    return place


def test_a_life_with_state_on_s3(project: Path, deployer: Deployer, bucket: str) -> None:
    place = to_bucket(project, bucket)
    assert deployer("preview", "--exit-code").code == 2
    assert deployer("up", "--yes").code == 0
    assert not (project / ".pulumi").exists()
    assert deployer("preview", "--exit-code").code == 0
    assert deployer("drift").code == 0
    (project / "rows.csv").write_text("id,delay\n1,10\n", encoding="utf-8")
    assert deployer("ingest", "flights", "rows.csv").code == 0
    assert "ingest" in deployer("history", "flights").out
    specs = project / "specs" / "flights.yaml"
    specs.write_text(specs.read_text().replace("name: delay, type: 'int32'", "name: delay, type: 'int64'"))
    assert deployer("preview", "--out", "plan.json", "--exit-code").code == 2
    assert deployer("up", "plan.json").code == 0
    again = deployer("up", "plan.json")
    assert (again.code, "changed since" in again.err) == (3, True)
    specs.write_text("kind: [")
    assert deployer("tables").code == 0  # the root is read from what was applied
    specs.unlink()
    assert deployer("destroy", "--yes", "--allow-destroy", "table/air.flights").code == 0
    history = [path for path in S3Objects(place).list(".pulumi/history") if path.endswith(".history.json")]
    kinds = [json.loads(S3Objects(place).get(path))["kind"] for path in sorted(history)]
    assert kinds == ["update", "update", "destroy"]


def test_state_moves_to_a_bucket_and_back(project: Path, deployer: Deployer, bucket: str) -> None:
    assert deployer("up", "--yes").code == 0
    assert deployer("stack", "export", "dev.json").out == "wrote dev.json: 5 resources\n"
    assert Path("dev.json").stat().st_mode & 0o077 == 0
    assert "the file exists already" in deployer("stack", "export", "dev.json").err
    to_bucket(project, bucket)
    found = deployer("stack", "export", "other.json")
    assert (found.code, "stack dev has no state" in found.err) == (1, True)
    assert deployer("preview", "--exit-code").code == 2  # the lake is there, and this state does not know it
    assert deployer("stack", "import", "dev.json").out == "imported dev.json: 5 resources; now run deployer preview\n"
    assert deployer("preview", "--exit-code").code == 0
    assert deployer("stack", "export", "other.json").code == 0
    assert json.loads(Path("other.json").read_text()) == json.loads(Path("dev.json").read_text())
    asked = deployer("stack", "import", "dev.json")
    assert (asked.code, "stdin is not a terminal" in asked.err) == (1, True)
    assert deployer("stack", "import", "dev.json", "--yes", "--json").json == {
        "file": "dev.json", "resources": 5, "replaced": 5,
    }  # fmt: skip


OTHERS = {"urn": "urn:pulumi:prod::lakes::pulumi:pulumi:Stack::lakes-prod"}
BAD = {
    "[]": "not an export of a stack",
    "{": "not an export of a stack",
    '{"version": 2, "deployment": {}}': "an export of version 2",
    json.dumps({"version": 3, "deployment": {"resources": [OTHERS]}}): "of another project or stack: lakes-prod",
    '{"version": 3, "deployment": {"secrets_providers": {"type": "cloud"}}}': "kept by the provider 'cloud'",
}


@pytest.mark.parametrize("text", BAD)
def test_files_that_no_stack_takes(project: Path, deployer: Deployer, text: str) -> None:
    (project / "bad.json").write_text(text, encoding="utf-8")
    ran = deployer("stack", "import", "bad.json")
    assert ran.code in (1, 3) and BAD[text] in ran.err and not (project / ".pulumi" / "stacks").exists()
