"""F18: what a lake on S3 lost is named: the DynamoDB table of its state, and data files."""

from __future__ import annotations

import json
from pathlib import Path

import boto3
import pyarrow as pa
import pytest

from deployer.platform.storage.s3_objects import S3Objects
from tests.cli.conftest import Deployer
from tests.projects import INSTANCE, make_project, table
from tests.tables.lakes import Lake


@pytest.fixture
def loaded(on_s3: str, deployer: Deployer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The root of a lake with a table of three rows."""
    lake = Lake(tmp_path, on_s3)
    lake.table(pa.schema([pa.field("id", pa.int64(), nullable=False)]), ("id",), splits=(), name="planes")
    specs = {"demo.yaml": INSTANCE.replace("lakes/demo", on_s3), "planes.yaml": table("planes")}
    monkeypatch.chdir(make_project(tmp_path / "project", specs))
    Path("planes.csv").write_text("id\n1\n2\n3\n", encoding="utf-8")
    assert deployer("ingest", "planes", "planes.csv").code == 0
    return on_s3


@pytest.fixture
def lost(loaded: str) -> str:
    """The root of the lake, whose state's table was deleted."""
    sign = json.loads(S3Objects(f"{loaded}/_state").get("store.json"))
    boto3.client("dynamodb").delete_table(TableName=sign["table"])
    return loaded


COMMANDS: tuple[tuple[str, ...], ...] = (
    ("tables",),
    ("describe", "planes"),
    ("history", "planes"),
    ("query", "planes"),
    ("sql", "select 1 from planes"),
    ("ingest", "planes", "planes.csv"),
    ("preview",),
    ("up", "--yes"),
    ("state", "verify"),
    ("state", "repair"),
    ("state", "export", "state.zip"),
    ("service", "list"),
    ("service", "run", "planes", "COMPACT"),
    ("savepoint", "create", "x"),
    ("restore", "planes", "--at", "1", "--yes"),
    ("table", "gc"),
    ("table", "delete", "planes", "--force"),
    ("report", "--html", "page.html"),
)


@pytest.mark.full
def test_every_command_names_it_and_makes_nothing(lost: str, deployer: Deployer) -> None:
    before = made(lost)
    for command in COMMANDS:
        ran = deployer(*command)
        said = ran.out + ran.err
        assert ran.code == 1 and "Traceback" not in said, (command, ran)
        assert "DynamoDB table deployer-" in said and "the table does not exist; check the region and account" in said
        assert "or restore the table from a backup" in said, (command, ran)
    assert made(lost) == before


def made(root: str) -> tuple[list[str], list[str]]:
    """All objects of the lake, and all tables of DynamoDB."""
    return sorted(S3Objects(root).list("")), boto3.client("dynamodb").list_tables()["TableNames"]


def test_missing_data_files_are_found_by_state_verify(loaded: str, deployer: Deployer) -> None:
    assert deployer("state", "verify").code == 0
    objects = S3Objects(loaded)
    [file] = [path for path in objects.list("air") if "/data/" in path]
    objects.delete([file])
    ran = deployer("state", "verify")
    assert ran.code == 2
    assert f"its data file data/{file.rpartition('/')[2]} is missing" in " ".join(ran.out.split())
