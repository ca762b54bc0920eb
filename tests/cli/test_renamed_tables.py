"""Tables that somebody renamed by hand: every command knows them by their ids, and says both names."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import forks
from tests.cli.conftest import TWO_TABLES, Deployer
from tests.cli.test_apply import add_rows, edit
from tests.projects import applied_project, run

CHECKPOINT = Path(".pulumi/stacks/lakes/dev.json")


def ok(deployer: Deployer, *arguments: str) -> str:
    ran = deployer(*arguments)
    assert ran.code == 0, ran.out + ran.err
    return ran.out


def rename() -> None:
    run("table", "rename", "flights", "hops")
    edit(Path("specs/flights.yaml"), "row_keys", "description: Departures.\nrow_keys")


@pytest.fixture
def renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """air.flights is air.hops, and its spec has another change besides."""
    folder = applied_project(tmp_path / "project", TWO_TABLES, rename)
    monkeypatch.chdir(folder)
    return folder


def changes(deployer: Deployer, *options: str) -> dict[str, tuple[str, list[str]]]:
    """What a plan does to which resource."""
    plan = json.loads(ok(deployer, "preview", "--json", *options))
    assert not plan["foreign"]
    return {each["address"]: (each["action"], [c["summary"] for c in each["changes"]]) for each in plan["resources"]}


PLANNED = {"table/air.flights": ("update", ["rename table air.hops → air.flights", "description none → “Departures.”"])}


def test_it_is_renamed_back_with_whatever_else_changes(renamed: Path, deployer: Deployer) -> None:
    assert changes(deployer) == PLANNED
    add_rows(renamed, "flights")  # its dataset stays where it is
    ran = deployer("up", "--yes")
    assert (ran.code, "updated table/air.flights" in ran.err, "Done: 1 updated" in ran.out) == (0, True, True), ran.err
    assert changes(deployer) == {}
    assert deployer("drift").code == 0
    assert json.loads(ok(deployer, "sql", "SELECT count(*) AS n FROM air.flights", "--json"))["rows"] == [{"n": 3}]


@pytest.mark.parametrize("form", ["tree", "markdown", "html", "json"])
def test_every_form_of_the_plan_names_it_by_both_names(renamed: Path, deployer: Deployer, form: str) -> None:
    (renamed / "specs" / "planes.yaml").unlink()
    ok(deployer, "table", "rename", "planes", "jets")
    shown = ok(deployer, "preview", "--format", form)
    for words in ("table/air.flights", "rename table air.hops → air.flights"):
        assert words in shown
    for words in ("table/air.planes", "delete table, which is air.jets now, and its data"):
        assert words in shown


def test_a_saved_plan_renames_it_and_knows_that_somebody_renamed_it_again(renamed: Path, deployer: Deployer) -> None:
    digest = json.loads(ok(deployer, "preview", "--json", "--out", "saved.plan"))["saved"]["digest"]
    assert "rename table air.hops → air.flights" in Path("saved.plan").read_text(encoding="utf-8")
    ok(deployer, "table", "rename", "hops", "jumps")
    moved = deployer("up", "saved.plan", "--expect", digest)
    assert moved.code == 3 and "table/air.hops: exists: yes → no" in moved.err, moved.err
    ok(deployer, "table", "rename", "jumps", "hops")
    assert "rename table air.hops → air.flights" in ok(deployer, "up", "saved.plan", "--expect", digest)
    assert changes(deployer) == {}


def test_a_saved_plan_is_of_the_tables_that_pulumis_state_had(renamed: Path, deployer: Deployer) -> None:
    ok(deployer, "table", "rename", "hops", "flights")
    ok(deployer, "preview", "--out", "saved.plan")
    edit_ids(lambda ids: {"air.flights": ids["air.planes"], "air.planes": ids["air.flights"]})
    moved = deployer("up", "saved.plan", "--yes")
    assert moved.code == 3 and "table/air.flights: resource: table/air.flights → table/air.planes" in moved.err


def edit_ids(change: Callable[[dict[str, str]], dict[str, str]]) -> None:
    """Has Pulumi's state know tables by other ids."""
    document = json.loads(CHECKPOINT.read_text(encoding="utf-8"))
    tables = [each for each in document["checkpoint"]["latest"]["resources"] if each["type"] == "lake:index:Table"]
    ids = change({each["urn"].rpartition("::")[2]: each["id"] for each in tables})
    for each in tables:
        each["id"] = ids[each["urn"].rpartition("::")[2]]
    CHECKPOINT.write_text(json.dumps(document), encoding="utf-8")


@pytest.mark.parametrize("target", ["table/air.flights", "table/air.hops"])
def test_it_is_a_target_by_either_name(renamed: Path, deployer: Deployer, target: str) -> None:
    ok(deployer, "table", "offline", "planes")
    assert changes(deployer, "--target", target) == PLANNED
    ok(deployer, "up", "--yes", "--target", target)
    assert changes(deployer) == {"table/air.planes": ("update", ["put table online"])}


@pytest.mark.parametrize("allowed", ["table/air.flights", "table/air.hops"])
def test_it_is_deleted_when_either_name_allows_it(renamed: Path, deployer: Deployer, allowed: str) -> None:
    add_rows(renamed, "flights")
    (renamed / "specs" / "flights.yaml").unlink()
    refused = deployer("up", "--yes")
    assert (refused.code, "refused: destroys data; to allow it: --allow-destroy table/air.flights" in refused.out) == (
        3,
        True,
    )
    ran = deployer("up", "--yes", "--allow-destroy", allowed)
    assert (ran.code, "deleted table/air.flights" in ran.err) == (0, True), ran.err
    assert not list((renamed / "lakes" / "demo" / "air").glob("flights-*"))
    assert changes(deployer) == {}


def test_names_that_are_in_use_are_refused_by_preview_and_up_alike(project: Path, deployer: Deployer) -> None:
    ok(deployer, "up", "--yes")
    for before, after in (("flights", "x"), ("planes", "flights"), ("x", "planes")):
        ok(deployer, "table", "rename", before, after)
    words = "table/air.planes has the name air.flights now: rename it back first, `deployer table rename air.flights"
    shown = deployer("preview")
    assert (shown.code, shown.out.count("refused: "), words in shown.out) == (0, 2, True)
    ran = deployer("up", "--yes")
    assert (ran.code, "2 changes are refused; nothing was changed" in ran.err) == (3, True)
    ok(deployer, "table", "rename", "flights", "x")
    ok(deployer, "table", "rename", "planes", "flights")
    ok(deployer, "up", "--yes")
    assert changes(deployer) == {}


def test_a_spec_that_follows_a_rename_without_renamed_from_loses_nothing(renamed: Path, deployer: Deployer) -> None:
    add_rows(renamed, "flights")
    edit(renamed / "specs" / "flights.yaml", "name: flights", "name: hops")
    ran = deployer("up", "--yes", "--allow-destroy", "table/air.flights")
    assert (ran.code, "write `renamed_from: air.flights` to keep it under this name" in ran.out) == (3, True), ran.out
    edit(renamed / "specs" / "flights.yaml", "name: hops", "name: hops\nrenamed_from: flights")
    assert changes(deployer) == {"table/air.hops": ("update", ["description none → “Departures.”"])}
    ok(deployer, "up", "--yes")
    assert changes(deployer) == {}
    assert json.loads(ok(deployer, "sql", "SELECT count(*) AS n FROM air.hops", "--json"))["rows"] == [{"n": 3}]


def test_a_rename_of_the_specs_keeps_a_table_that_pulumis_state_lost(project: Path, deployer: Deployer) -> None:
    ok(deployer, "up", "--yes")
    add_rows(project, "flights")
    CHECKPOINT.unlink()
    edit(project / "specs" / "flights.yaml", "name: flights", "name: hops\nrenamed_from: flights")
    plan = json.loads(ok(deployer, "preview", "--json"))
    assert [(each["address"], each["action"]) for each in plan["resources"]] == [("table/air.hops", "update")]
    assert {"address": "table/air.hops", "action": "create"}.items() <= plan["foreign"][-2].items()
    ok(deployer, "up", "--yes")
    assert json.loads(ok(deployer, "sql", "SELECT count(*) AS n FROM air.hops", "--json"))["rows"] == [{"n": 3}]
    assert changes(deployer) == {}


def test_ids_are_known_from_a_run_that_was_cut_off(project: Path, deployer: Deployer) -> None:
    """They are in its journal alone, which the engine starts from too."""
    command = [sys.executable, "-m", "deployer", "up", "--yes"]
    environment = {**os.environ, "DEPLOYER_FAILPOINT": "engine.checkpoint.begin"}
    killed = forks.run(command, env=environment, text=True)
    assert (killed.returncode, CHECKPOINT.exists()) == (-signal.SIGKILL, False), killed.stderr
    ok(deployer, "table", "rename", "flights", "hops")
    plan = json.loads(ok(deployer, "preview", "--json"))
    assert [(each["address"], [c["summary"] for c in each["changes"]]) for each in plan["resources"]] == [
        ("table/air.flights", ["rename table air.hops → air.flights"])
    ]
    ok(deployer, "up", "--yes")
    assert changes(deployer) == {}


def test_one_table_under_two_addresses_is_refused(renamed: Path, deployer: Deployer) -> None:
    edit_ids(lambda ids: {"air.flights": ids["air.planes"], "air.planes": ids["air.planes"]})
    for command in (("preview",), ("up", "--yes")):
        ran = deployer(*command)
        assert ran.code == 1
        assert "Pulumi's state has the same table as table/air.flights and as table/air.planes" in ran.err
