"""Nothing is removed that no plan and no report showed, and protection holds whatever the state says."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from deployer.state import open_store
from deployer.state.model.entities import INSTANCE_LOG
from deployer.state.model.location import new_location
from tests.projects import table as spec

from . import forge
from .conftest import Deployer

DAY = 86_400_000


def replaced(root: Path, name: str = "flights", *, at: int | None = None) -> str:
    """Empties a table, so that it has a replaced dataset, and gives where that is; `at`: it was done then (ms)."""
    from deployer.tables.evolution.rewrite.truncate import reinitialise_table

    entry = forge.table(root, name)
    with closing(open_store(root)) as store:
        reinitialise_table(store, str(root), entry.table_id, allow_destroy=True)
    if at is not None:
        forge.age(root, entry.table_id, at)
    return str(entry.location)


def test_a_replaced_dataset_whose_time_is_over_is_in_the_plan(root: Path, deployer: Deployer) -> None:
    """F2: `preview` said that there is nothing to do, and `up` removed data."""
    place = replaced(root, at=forge.LONG_AGO)
    ran = deployer("preview", "--exit-code")
    assert ran.code == 2 and "nothing to do" not in ran.out
    assert f"removes  table/air.flights {place} (3 rows, " in ran.out and "1 dataset to remove (" in ran.out
    removal = deployer("preview", "--format", "json").json["removals"]
    assert [(each["address"], each["location"], each["rows"]) for each in removal] == [("table/air.flights", place, 3)]
    for form in ("markdown", "html"):
        shown = deployer("preview", "--format", form).out
        assert place.rpartition("/")[2] in shown.replace("\\", "") and "1 dataset to remove" in shown
    assert (root / place).exists()
    assert deployer("up").code == 1  # stdin is not a terminal
    assert (root / place).exists()
    ran = deployer("up", "--yes")
    assert ran.code == 0 and f"{place} is removed" in ran.err and not (root / place).exists()
    assert "nothing to do" in deployer("preview").out


def test_what_became_due_after_the_plan_waits_for_the_next(
    root: Path, deployer: Deployer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F2: `up` removes what its plan showed, and nothing that became due in between."""
    from deployer.app.operations import apply as operation

    place: list[str] = []
    apply = operation._apply

    def applied(*arguments: Any, **more: Any) -> Any:
        if not place:
            place.append(replaced(root, at=forge.LONG_AGO))
        return apply(*arguments, **more)

    monkeypatch.setattr(operation, "_apply", applied)
    assert deployer("up", "--yes").code == 0 and (root / place[0]).exists()
    assert deployer("up", "--yes").code == 0 and not (root / place[0]).exists()


def test_a_saved_plan_removes_what_it_showed(root: Path, project: Path, deployer: Deployer) -> None:
    """F2: saved plans carry removals, and those that became due since wait."""
    first = replaced(root, at=forge.LONG_AGO)
    assert deployer("preview", "--out", "a.plan").code == 0
    second = replaced(root, "planes", at=forge.LONG_AGO)
    ran = deployer("up", "a.plan")
    if ran.code == 3:  # planes was emptied, which a plan may take for a change of what it read
        assert (root / first).exists() and (root / second).exists()
        return
    assert ran.code == 0 and not (root / first).exists() and (root / second).exists()


def test_an_unfinished_rewrite_that_goes_is_in_the_plan(root: Path, deployer: Deployer) -> None:
    """F2: a given-up rewrite; one at a place of its own is the only thing that such an entry can have removed."""
    planes = forge.table(root, "planes")
    from deployer.state.model.location import rewrite_location

    own = rewrite_location(planes.location, planes.table_id, 9)
    shutil.copytree(root / planes.location, root / own)
    update = {"type": "rewrite-started", "number": 9, "location": own, "target": "x"}
    forge.append(root, planes.table_id, update)
    assert f"removes  table/air.planes {own} (" in deployer("preview").out
    assert (root / own).exists()
    assert deployer("up", "--yes").code == 0
    assert not (root / own).exists() and (root / planes.location).exists()


def test_a_table_cannot_be_made_again_over_its_rows(root: Path, deployer: Deployer) -> None:
    """F2: `creating` in the instance's log had the next `up` remove a protected table's data, and create it anew."""
    flights = forge.table(root, "flights")
    before = forge.tree(root)
    forge.to_instance(root, {"type": "set-table-status", "table_id": flights.table_id, "status": "creating"})
    ran = deployer("up", "--yes")
    assert ran.code == 1 and "is active and cannot become creating" in ran.err
    assert forge.tree(root) == before


@pytest.mark.parametrize("logged", [True, False], ids=["with its log", "without a log"])
def test_a_table_that_is_registered_again_as_being_created_keeps_its_rows(
    logged: bool, root: Path, deployer: Deployer
) -> None:
    """F2: forgotten and registered again in one entry, the table's own place passes every check of locations."""
    flights = forge.table(root, "flights")
    entry = {
        "table_id": flights.table_id,
        "database": "air",
        "name": "flights",
        "location": flights.location,
        "status": "creating",
        "created_at": 1,
        "dataset": 1,
    }
    updates: list[forge.Update] = [
        {"type": "remove-table", "table_id": flights.table_id},
        {"type": "register-table", "entry": entry},
    ]
    forge.to_instance(root, *updates)
    if not logged:
        with closing(open_store(root)) as store:
            store.remove_log(flights.table_id)
    before = forge.tree(root)
    preview = deployer("preview")
    assert "nothing to do" not in preview.out
    ran = deployer("up", "--yes")
    assert ran.code in (1, 3) and forge.tree(root) == before, ran


@pytest.mark.parametrize("logged", [True, False], ids=["with its log", "without a log"])
@pytest.mark.parametrize("declared", [True, False], ids=["declared", "not declared"])
def test_a_deletion_that_nobody_began_is_shown_and_refused(
    logged: bool, declared: bool, root: Path, project: Path, deployer: Deployer
) -> None:
    """F2: `deleting` in the instance's log had the next `up` finish a deletion of a protected table, unshown."""
    flights = forge.table(root, "flights")
    forge.to_instance(root, {"type": "set-table-status", "table_id": flights.table_id, "status": "deleting"})
    if not logged:
        with closing(open_store(root)) as store:
            store.remove_log(flights.table_id)
    if not declared:
        (project / "specs" / "flights.yaml").unlink()
    before = forge.tree(root)
    preview = deployer("preview")
    assert f"removes  table/air.flights {flights.location}" in preview.out and "refused: its deletion was begun" in (
        preview.out
    )
    for command in (("up", "--yes"), ("destroy", "--yes", "--allow-destroy", "table/air.planes")):
        ran = deployer(*command)
        assert ran.code == 3 and forge.tree(root) == before, ran
    ran = deployer("up", "--yes", "--allow-destroy", "table/air.flights")
    assert ran.code == 0 and not (root / flights.location).exists()


def test_the_engine_without_a_plan_keeps_protection_too(root: Path) -> None:
    """F2: the provider asks again, so plain Pulumi does not finish such a deletion either."""
    from deployer.errors import Refused
    from deployer.tables.admin.deletion import delete_table

    flights = forge.table(root, "flights")
    forge.to_instance(root, {"type": "set-table-status", "table_id": flights.table_id, "status": "deleting"})
    with closing(open_store(root)) as store, pytest.raises(Refused, match="its deletion was begun and it holds 3 rows"):
        delete_table(store, str(root), flights.table_id, allow_destroy=False)


def test_gc_and_clean_list_the_datasets_that_go(root: Path, deployer: Deployer) -> None:
    """F2: their reports name each dataset; a dry run names the same ones first."""
    place = replaced(root, at=forge.LONG_AGO)
    dry = deployer("table", "gc", "flights", "--dry-run", "--json").json["tables"][0]["datasets"]
    shown = deployer("table", "gc", "flights", "--dry-run").out
    assert dry == [place] and f"dataset {place}: " in shown and (root / place).exists()
    ran = deployer("service", "run", "flights", "CLEAN")
    assert ran.code == 0 and f"dataset {place}: " in ran.out and not (root / place).exists()


def test_a_deletion_lists_the_datasets_that_go(root: Path, deployer: Deployer) -> None:
    """F2: `table delete` says what it removed; `destroy` and `up` show kept datasets of tables that go."""
    place = replaced(root)
    now = forge.table(root, "flights").location
    ran = deployer("destroy", "--yes")
    assert ran.code == 3 and f"removes  table/air.flights {place} (3 rows, " in ran.out
    done = deployer("table", "delete", "flights", "--force", "--json").json
    assert sorted(each["location"] for each in done["datasets"]) == sorted([place, now])
    assert not (root / place).exists() and not (root / now).exists()


def test_a_tables_data_that_is_kept_does_not_go_with_another(root: Path, deployer: Deployer) -> None:
    """F2: a table that somebody registered at the place of a kept dataset does not take it along."""
    place = replaced(root)
    id = place.rpartition("-")[2][:8] + "0" * 24
    entry = {"table_id": id, "database": "air", "name": "x", "location": place, "status": "active", "created_at": 1}
    forge.to_instance(root, {"type": "register-table", "entry": {**entry, "dataset": 1}})
    forge.append(
        root,
        id,
        {"type": "create-table", "properties": {"deletion_protection": False}, "schema": "", "lance_version": 1},
        at=1,
    )
    before = forge.tree(root)
    assert deployer("table", "delete", "x", "--force").code == 1
    assert deployer("up", "--yes").code in (0, 1)
    assert forge.tree(root) == before


def checkpoint(project: Path) -> Path:
    (file,) = (project / ".pulumi" / "stacks").rglob("*.json")
    return file


def hostile_resource(project: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Adds a resource to Pulumi's state that is like that of air.flights but for the change."""
    import copy
    import json

    file = checkpoint(project)
    document = json.loads(file.read_text())
    resources = document["checkpoint"]["latest"]["resources"]
    flights = next(each for each in resources if each["urn"].endswith("air.flights"))
    resources.append(change(copy.deepcopy(flights)))
    file.write_text(json.dumps(document))


def unprotect(project: Path, deployer: Deployer) -> None:
    for name in ("flights", "planes"):
        with (project / "specs" / f"{name}.yaml").open("a") as file:
            file.write("deletion_protection: false\n")
    assert deployer("up", "--yes").code == 0


def test_pulumis_state_cannot_have_another_table_deleted(root: Path, project: Path, deployer: Deployer) -> None:
    """F2: a resource in a hostile checkpoint has a name that nobody declares and the id of a table with rows."""
    unprotect(project, deployer)

    def renamed(resource: dict[str, Any]) -> dict[str, Any]:
        for part in ("inputs", "outputs"):
            resource[part]["name"] = "zz"
        return {**resource, "urn": resource["urn"].replace("air.flights", "air.zz")}

    hostile_resource(project, renamed)
    before = forge.tree(root)
    for command in (("preview",), ("up", "--yes"), ("up", "--yes", "--allow-destroy", "table/air.zz")):
        ran = deployer(*command)
        assert ran.code == 1
        assert "Pulumi's state has the same table as table/air.flights and as table/air.zz" in ran.err
        assert forge.tree(root) == before


def test_pulumis_state_cannot_have_a_declared_table_deleted_by_another_name(
    root: Path, project: Path, deployer: Deployer
) -> None:
    """F2: the resource of a table with rows has a name that nobody declares."""
    unprotect(project, deployer)
    file = checkpoint(project)
    file.write_text(file.read_text().replace("::air.flights", "::air.zz"))
    before = forge.tree(root)
    assert "the table air.flights is table/air.zz in Pulumi's state" in deployer("preview").out
    for command in (("up", "--yes"), ("up", "--yes", "--allow-destroy", "table/air.zz")):
        ran = deployer(*command)
        assert ran.code == 3 and "nothing was changed" in ran.err
        assert forge.tree(root) == before


def test_pulumis_state_cannot_have_another_lake_deleted(
    root: Path, project: Path, copied: Callable[[str], Path], deployer: Deployer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F2: a resource in a hostile checkpoint is in another lake, whose tables are not protected."""
    other = copied("other")
    unprotect(other, deployer)
    elsewhere = other / "lakes" / "demo"
    id = forge.table(elsewhere, "flights").table_id
    monkeypatch.chdir(project)

    def moved(resource: dict[str, Any]) -> dict[str, Any]:
        for part in ("inputs", "outputs"):
            resource[part] |= {"name": "zz", "root": str(elsewhere)}
        return {**resource, "id": id, "urn": resource["urn"].replace("air.flights", "air.zz")}

    hostile_resource(project, moved)
    hostile_resource(
        project,
        lambda each: {
            **each,
            "id": "theirs",
            "type": "lake:index:Instance",
            "urn": each["urn"].replace("lake:index:Table::air.flights", "lake:index:Instance::theirs"),
            "inputs": {"name": "theirs", "root": str(elsewhere)},
            "outputs": {"name": "theirs", "root": str(elsewhere)},
        },
    )
    before, state = forge.tree(elsewhere), (elsewhere / "_state" / "state.db").stat().st_ino
    assert deployer("up", "--yes").code != 0
    deployer("destroy", "--yes")
    assert forge.tree(elsewhere) == before and (elsewhere / "_state" / "state.db").stat().st_ino == state


def test_pulumis_state_cannot_have_another_table_changed(root: Path, project: Path, deployer: Deployer) -> None:
    """F2: the id of one table in the resource of another, whose columns would be dropped."""
    import json

    file = checkpoint(project)
    document = json.loads(file.read_text())
    resources = {each["urn"].rpartition("::")[2]: each for each in document["checkpoint"]["latest"]["resources"]}
    resources["air.planes"]["id"] = resources["air.flights"]["id"]
    file.write_text(json.dumps(document))
    before = forge.tree(root)
    assert deployer("up", "--yes").code != 0 and forge.tree(root) == before


def test_a_name_is_free_only_once(root: Path, deployer: Deployer) -> None:
    """F2: a table's status and place are checked in a snapshot too."""
    from dataclasses import replace

    flights = forge.table(root, "flights")
    with closing(open_store(root)) as store:
        state = store.instance()
        wrong = replace(flights, status="creating", location=new_location("air", "other", flights.table_id))
        tables = {**state.tables, flights.table_id: wrong}
        store._snapshot_writer.take(replace(state, tables=tables))
    with closing(open_store(root)) as store:
        assert store.instance().tables[flights.table_id].status == "active"  # from the log
    assert deployer("state", "verify").code == 2
    assert deployer("up", "--yes").code == 0 and INSTANCE_LOG


def test_specs_of_a_database_cannot_be_put_into_the_state(project: Path, deployer: Deployer) -> None:
    """F2: a database is a folder of the root, so it cannot be called as one of deployer's own."""
    (project / "specs" / "odd.yaml").write_text(spec("odd", database="_state"))
    ran = deployer("validate")
    assert ran.code == 1 and "_state" in ran.err


def test_an_unfinished_deletion_whose_log_cannot_be_read_removes_nothing(root: Path, deployer: Deployer) -> None:
    """F2, F18: what such a table holds is unknown, so it is shown as unreadable and left alone."""
    planes = forge.table(root, "planes")
    forge.to_instance(root, {"type": "set-table-status", "table_id": planes.table_id, "status": "deleting"})
    forge.append_raw(root, planes.table_id, b"{")
    before = forge.tree(root / planes.location)
    shown = deployer("preview", "--json")
    assert shown.code == 0 and [each["address"] for each in shown.json["unreadable"]] == ["table/air.planes"]
    assert "removals" not in shown.json
    assert deployer("up", "--yes").code == 1 and forge.tree(root / planes.location) == before
