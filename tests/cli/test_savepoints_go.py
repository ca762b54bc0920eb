"""Deleting tables that have savepoints: each way names them, and needs `--delete-savepoints`."""

from __future__ import annotations

import json
import os
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from deployer.errors import Refused
from deployer.provider.resources.run_context import Stores
from deployer.provider.resources.table import TableKind
from deployer.provider.urn import urn_of
from deployer.services.savepoints.autosavepoint import autosavepoint_table
from deployer.state import open_reader
from tests.tables.test_commands import Run, command, loaded  # noqa: F401 (fixtures)

ADDRESS = "table/air.flights"
BOTH = "2 savepoints (newer, older) go with it"


@pytest.fixture
def saved(loaded: Run) -> Run:  # noqa: F811
    """A loaded table with the savepoints `older` and `newer`."""
    for name in ("older", "newer"):
        assert loaded("savepoint", "create", name)[0] == 0
    return loaded


def words(*texts: str) -> str:
    return " ".join(" ".join(texts).split())


def state() -> Any:
    [found] = Path.cwd().glob("**/_state")
    with closing(open_reader(str(found.parent))) as store:
        return store.instance().version, {each: store.table(each).version for each in store.instance().tables}


def refuses(run: Run, *arguments: str) -> str:
    """What the command says, which changes nothing."""
    before = state()
    code, out, err = run(*arguments)
    assert code == 3 and state() == before, out + err
    return words(out, err)


def without_spec() -> None:
    [file] = [each for each in Path().rglob("*.yaml") if "name: flights" in each.read_text(encoding="utf-8")]
    file.unlink()


def test_table_delete_names_them_and_needs_the_option(saved: Run) -> None:
    said = refuses(saved, "table", "delete", "flights", "--force")
    assert f"{ADDRESS}: {BOTH}" in said and "--delete-savepoints" in said
    code, out, _ = saved("table", "delete", "flights", "--force", "--delete-savepoints", "--json")
    assert code == 0 and json.loads(out)["savepoints"] == ["newer", "older"]


def test_destroy_names_them_and_needs_the_option(saved: Run) -> None:
    destroy = ("destroy", "--yes", "--allow-destroy", ADDRESS)
    said = refuses(saved, *destroy)
    assert f"{BOTH}; to allow it: --delete-savepoints" in said
    document = json.loads(saved(*destroy, "--json")[1])
    [reason] = document["error"]["refused"]
    assert reason["address"] == ADDRESS and BOTH in reason["why"]
    [deleted] = [each for each in document["plan"]["resources"] if each["address"] == ADDRESS]
    assert deleted["savepoints"] == ["newer", "older"]
    assert saved(*destroy, "--delete-savepoints")[0] == 0


def test_up_without_the_spec_names_them_and_needs_the_option(saved: Run) -> None:
    without_spec()
    said = words(saved("preview")[1])
    assert f"destroys data; to allow it: --allow-destroy {ADDRESS}; {BOTH}; to allow it: --delete-savepoints" in said
    assert "newer" in refuses(saved, "up", "--yes", "--allow-destroy", ADDRESS)
    assert refuses(saved, "up", "--yes", "--delete-savepoints")
    code, out, err = saved("up", "--yes", "--allow-destroy", ADDRESS, "--delete-savepoints")
    assert code == 0 and BOTH in words(out), err
    assert not state()[1]


def test_a_saved_plan_has_the_option_and_moves_with_the_savepoints(saved: Run) -> None:
    without_spec()
    allowed = ("--allow-destroy", ADDRESS)
    assert BOTH in refuses(saved, "preview", "--out", "plan.json", *allowed)
    for file in ("plan.json", "later.json"):
        assert saved("preview", "--out", file, *allowed, "--delete-savepoints")[0] == 0
    assert "are part of the plan" in words(*saved("up", "plan.json", "--yes", "--delete-savepoints")[1:])
    assert saved("savepoint", "create", "newest")[0] == 0
    assert f"{ADDRESS}: savepoints:" in refuses(saved, "up", "plan.json", "--yes")
    assert saved("savepoint", "delete", "newest")[0] == 0
    assert saved("up", "later.json", "--yes")[0] == 0 and not state()[1]


def test_an_empty_table_that_nothing_protects_needs_it_too(saved: Run) -> None:
    [file] = [each for each in Path().rglob("*.yaml") if "name: flights" in each.read_text(encoding="utf-8")]
    assert saved("table", "reinitialise", "flights", "--force")[0] == 0
    file.unlink()
    assert BOTH in refuses(saved, "up", "--yes")
    [deleted] = json.loads(saved("preview", "--delete-savepoints", "--json")[1])["resources"]
    [change] = deleted["changes"]
    assert (change["risk"], change["refused"]) == ("destroys", None) and BOTH in change["why"]


def test_those_of_services_count_and_of_many_the_newest_are_named(saved: Run) -> None:
    [found] = Path.cwd().glob("**/_state")
    taken = autosavepoint_table(str(found.parent), "flights").savepoint
    assert taken is not None and f"3 savepoints ({taken.name}, newer, older)" in refuses(
        saved, "table", "delete", "flights", "--force"
    )
    for number in range(5):
        assert saved("savepoint", "create", f"s{number}")[0] == 0
    assert "8 savepoints (s4, s3, s2, s1, s0 and 3 older) go with it" in refuses(
        saved, "table", "delete", "flights", "--force"
    )


def test_plain_pulumi_refuses_them(saved: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DEPLOYER_DELETE_SAVEPOINTS", raising=False)  # of the run of another test in this process
    [found] = Path.cwd().glob("**/_state")
    root = str(found.parent)
    with closing(open_reader(root)) as store:
        [table_id] = store.instance().tables
    urn, outputs = urn_of("demo", "dev", ADDRESS), {"root": root, "database": "air", "name": "flights"}
    before = state()
    stores = Stores(Path.cwd(), [ADDRESS])
    with closing(stores), pytest.raises(Refused, match=r"2 savepoints \(newer, older\) go with it"):
        TableKind().delete(stores, urn, table_id, outputs)
    assert state() == before and os.environ.get("DEPLOYER_DELETE_SAVEPOINTS", "") == ""
    stores.delete_savepoints = True
    with closing(stores):
        TableKind().delete(stores, urn, table_id, outputs)
    assert not state()[1]
