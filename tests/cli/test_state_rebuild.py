"""`deployer state rebuild` as users run it: what it shows, asks and refuses, and that `preview` agrees after it."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import TWO_TABLES, Deployer
from tests.projects import applied_project, run, table

SERVICE = "services:\n  clean: {trigger: {commits: 100}}\n"


def load() -> None:
    Path("flights.csv").write_text("id,delay\n1,5\n2,\n3,7\n")
    run("ingest", "flights", "flights.csv", "--job-id", "one")


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the state store of a lake with rows in one of its two tables."""
    folder = applied_project(tmp_path / "project", TWO_TABLES, load)
    monkeypatch.chdir(folder)
    return folder / "lakes" / "demo" / "_state"


def test_nothing_is_left_to_do_after_it(state: Path, deployer: Deployer) -> None:
    before = _tables(deployer)
    described = deployer("describe", "flights", "--json").json
    shutil.rmtree(state)
    shown = deployer("state", "rebuild", "--preview")
    assert (shown.code, state.exists()) == (0, False)
    assert "air.flights" in shown.out and "its record" in shown.out
    assert deployer("up", "--yes").code == 3
    ran = deployer("state", "rebuild", "--yes")
    assert (ran.code, ran.out.splitlines()[-2]) == (0, "rebuilt the state of 2 tables")
    assert _tables(deployer) == before
    after = deployer("describe", "flights", "--json").json
    same = ("table_id", "columns", "row_keys", "leaves", "location", "storage", "lance_version", "dataset")
    assert {name: after[name] for name in same} == {name: described[name] for name in same}
    assert deployer("state", "verify", "--full").code == 0
    assert "nothing to do" in deployer("preview").out
    assert deployer("drift").code == 0
    again = deployer("ingest", "flights", "flights.csv", "--job-id", "one", "--json").json
    assert again["already_done"] is True
    assert deployer("ingest", "flights", "flights.csv").code == 0
    assert [each["rows"] for each in deployer("tables", "--json").json["tables"]] == [6, 0]
    assert "nothing to do" in deployer("up", "--yes").out


def test_changes_of_the_specs_go_on_after_it(state: Path, deployer: Deployer) -> None:
    Path("specs/flights.yaml").write_text(table("flights", "delay: int32", "gate: string", more=SERVICE))
    assert deployer("up", "--yes").code == 0
    shutil.rmtree(state)
    assert deployer("state", "rebuild", "--yes").code == 0
    assert "nothing to do" in deployer("preview").out
    Path("specs/flights.yaml").write_text(table("flights", "delay: int64", "gate: string"))
    assert deployer("up", "--yes").code == 0
    assert "nothing to do" in deployer("preview").out


def test_a_whole_state_store_is_refused(state: Path, deployer: Deployer) -> None:
    ran = deployer("state", "rebuild", "--yes")
    assert ran.code == 3 and "the state store is there and has 2 tables" in ran.err


@pytest.mark.parametrize("damage", ["not_a_database", "empty", "no_instance", "a_log_is_damaged"])
def test_a_damaged_state_store_is_moved_aside(state: Path, deployer: Deployer, damage: str) -> None:
    file = state / "state.db"
    with closing(sqlite3.connect(file)) as connection:
        if damage == "no_instance":
            connection.execute("DELETE FROM entries WHERE log = 'instance'")
        elif damage == "a_log_is_damaged":
            connection.execute("UPDATE entries SET body = x'00' WHERE log <> 'instance'")
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    if damage == "not_a_database":
        file.write_bytes(b"not a database" * 400)
    elif damage == "empty":
        file.write_bytes(b"")
    damaged = file.read_bytes()
    ran = deployer("state", "rebuild", "--yes", "--json")
    assert ran.code == 0, ran
    aside = Path(ran.json["moved_aside"])
    assert aside.name.startswith("_state-damaged-") and (aside / "state.db").read_bytes() == damaged
    assert "nothing to do" in deployer("preview").out


def test_nobody_is_asked_without_a_terminal(state: Path, deployer: Deployer) -> None:
    shutil.rmtree(state)
    ran = deployer("state", "rebuild")
    assert ran.code == 1 and "--yes" in ran.err and not state.exists()


def test_without_datasets_there_is_nothing_to_rebuild(state: Path, deployer: Deployer) -> None:
    shutil.rmtree(state.parent)
    ran = deployer("state", "rebuild", "--yes")
    assert ran.code == 1 and "there is no dataset of a table" in ran.err and "Traceback" not in ran.err


def test_datasets_of_before_there_were_records(state: Path, deployer: Deployer) -> None:
    """Their ids are in Pulumi's state, their keys in the specs."""
    before = {name: deployer("describe", name, "--json").json["table_id"] for name in ("flights", "planes")}
    for record in state.parent.rglob("_deployer"):
        shutil.rmtree(record)
    shutil.rmtree(state)
    Path("specs/planes.yaml").rename("planes.yaml")
    ran = deployer("state", "rebuild", "--yes", "--json")
    assert ran.code == 0, ran
    assert [(each["from"], each["row_keys"]) for each in ran.json["tables"]] == [
        ("the specs", ["id"]),
        ("none: the specs do not declare it", []),
    ]
    assert {name: deployer("describe", name, "--json").json["table_id"] for name in before} == before
    Path("planes.yaml").rename("specs/planes.yaml")
    assert deployer("state", "verify", "--full").code == 0
    assert deployer("ingest", "flights", "flights.csv", "--job-id", "one", "--json").json["already_done"] is True
    assert deployer("up", "--yes").code == 0
    assert "nothing to do" in deployer("preview").out


def _tables(deployer: Deployer) -> list[object]:
    """What `tables` shows, without times: those of Lance's commits are a little before those of the log."""
    return [{**each, "last_write": None} for each in deployer("tables", "--json").json["tables"]]
