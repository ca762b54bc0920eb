"""A lake that the release df93aa6 wrote is read, changed and verified by this one; write_lake.py wrote it."""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import get_args

import pytest

from deployer.state.backends.protocol import Record
from deployer.state.log.entries import from_record
from deployer.state.log.updates import Update
from deployer.state.model.entities import INSTANCE_LOG
from tests.archives import unpack
from tests.cli.conftest import Deployer, deployer

__all__ = ["deployer"]

ARCHIVE = Path(__file__).with_name("df93aa6.tar.gz")
STATE = Path("lakes", "dev", "_state", "state.db")


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The old project in a folder that it has never been in; the current folder."""
    project = tmp_path / "moved" / "upgrade"
    unpack(ARCHIVE, project)
    (project / ".venv").symlink_to(Path(sys.executable).parent.parent)
    monkeypatch.chdir(project)
    return project


def rows(deployer: Deployer, table: str, *options: str) -> list[dict[str, object]]:
    ran = deployer("query", table, "--limit", "0", "--json", *options)
    assert ran.code == 0, ran.err
    found: list[dict[str, object]] = ran.json["rows"]
    return found


def test_an_old_lake_is_read_as_it_was_written(old: Path, deployer: Deployer) -> None:
    for command in ("validate", "preview --exit-code", "state verify", "drift", "service list", "tables"):
        ran = deployer(*command.split())
        assert ran.code == 0, f"{command}: {ran.out}{ran.err}"
    carriers = rows(deployer, "air.airlines")
    assert [(row["carrier"], row["title"], row["alliance"]) for row in carriers] == [
        ("AA", "American", "none"),
        ("DL", "Delta", "none"),
        ("UA", "United", "none"),
    ]
    assert len(rows(deployer, "air.flights")) == 120
    assert len(rows(deployer, "air.flights", "--range", "day=2013-03-01..2013-03-02")) == 6
    named = {each["name"] for each in deployer("savepoint", "list", "--json").json["savepoints"]}
    assert "before-a-mistake" in named
    assert deployer("history", "air.flights").code == 0


def test_an_old_lake_is_changed_and_verified(old: Path, deployer: Deployer) -> None:
    (old / "new.csv").write_text("carrier,title,fleet,alliance\nLH,Lufthansa,700,Star\n", encoding="utf-8")
    assert deployer("ingest", "air.airlines", "new.csv", "--engine", "driver", "--no-services").code == 0
    again = deployer("ingest", "air.flights", "data/load-1.csv", "--job-id", "load-1", "--json")
    assert again.code == 0 and len(rows(deployer, "air.flights")) == 120  # the old release did that job

    spec = old / "specs" / "carriers.yaml"
    text = spec.read_text(encoding="utf-8")
    column = "  - {name: country, type: string, default: \"'US'\"}\n"
    spec.write_text(text.replace("row_keys:", f"{column}row_keys:"), encoding="utf-8")
    ran = deployer("up", "--yes")
    assert ran.code == 0 and "Done: 1 updated" in ran.out, ran.err
    assert {row["country"] for row in rows(deployer, "air.airlines")} == {"US"}

    for service in ("COMPACT", "AUTOSAVEPOINT", "CLEAN"):
        assert deployer("service", "run", "air.flights", service, "--engine", "driver").code == 0
    assert deployer("restore", "before-a-mistake", "--yes").code == 0
    assert [row["carrier"] for row in rows(deployer, "air.airlines")] == ["AA", "DL", "UA"]
    assert deployer("up", "--yes").code == 0
    assert deployer("preview", "--exit-code").code == 0
    verified = deployer("state", "verify")
    assert verified.code == 0, verified.out


def test_an_old_plan_is_applied(old: Path, deployer: Deployer) -> None:
    spec = old / "specs" / "flights.yaml"
    text = spec.read_text(encoding="utf-8")
    spec.write_text(text.replace("A row is a departure.", "A row is a scheduled departure."), encoding="utf-8")
    ran = deployer("up", "saved.plan", "--yes")
    assert ran.code == 0 and "Done: 1 updated" in ran.out, ran.err
    assert deployer("preview", "--exit-code").code == 0


def test_old_exports_are_imported(old: Path, deployer: Deployer) -> None:
    ran = deployer("stack", "import", "stack.json", "--yes")
    assert ran.code == 0, ran.err
    assert deployer("preview", "--exit-code").code == 0

    shutil.copytree(old / "lakes" / "dev", old / "lakes" / "copy", ignore=shutil.ignore_patterns("_state"))
    instance = old / "specs" / "instance.yaml"
    text = instance.read_text(encoding="utf-8")
    instance.write_text(text.replace("root: lakes/dev", "root: lakes/copy"), encoding="utf-8")
    ran = deployer("state", "import", "state.zip")
    assert ran.code == 0, ran.err
    verified = deployer("state", "verify")
    assert verified.code == 0, verified.out


def test_every_kind_of_entry_is_in_the_old_logs(old: Path) -> None:
    """`added` are the kinds that later releases added."""
    added = {"FragmentsClaimed", "MoveServices", "RowsChanged", "TableRebuilt"}
    added |= {"CatalogRestored", "CatalogSavepointTaken"}
    kinds, snapshots = set[str](), set[str]()
    with closing(sqlite3.connect(old / STATE)) as database:
        for record in database.execute("SELECT log, version, txn_id, body FROM entries"):
            kinds |= {type(update).__name__ for update in from_record(Record(*record)).updates}
        snapshots |= {log for (log,) in database.execute("SELECT log FROM snapshots")}
    assert {each.__name__ for each in get_args(Update)} - kinds == added
    assert INSTANCE_LOG in snapshots and len(snapshots) == 3


def test_the_archive_names_no_folder_of_a_machine(old: Path) -> None:
    """So the lake can be used wherever it is unpacked."""
    checkpoint = json.loads((old / ".pulumi" / "stacks" / "upgrade" / "dev.json").read_text(encoding="utf-8"))
    assert '"/' not in json.dumps(checkpoint)
