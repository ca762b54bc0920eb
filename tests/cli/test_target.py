"""`--target`: a run changes what it names and nothing else, in the lake, in the state store and in Pulumi's state."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from deployer.cli.main import run
from deployer.plan.plan_file import _checksum
from deployer.state import open_reader, open_store
from deployer.state.updates import SetTableProperties
from tests.cli.conftest import Deployer
from tests.cli.test_policy import approval
from tests.cli.test_review_plans import add_rows, edit, git
from tests.projects import INSTANCE, make_project, table
from tests.security.foreign.lake_damage import folder_is_gone

#: What the specs change once `change_all` has edited them, by the actions of a plan.
ALL = {
    "instance/demo": "update",
    "table/air.flights": "update",
    "table/air.jets": "update",
    "table/geo.airports": "delete",
    "table/geo.cities": "create",
    "table/geo.lakes": "update",
    "table/geo.towns": "create",
}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of four tables, applied."""
    specs = {
        "demo.yaml": INSTANCE,
        "flights.yaml": table("flights", "delay: int32"),
        "planes.yaml": table("planes"),
        "airports.yaml": table("airports", database="geo"),
        "lakes.yaml": table("lakes", database="geo"),
    }
    folder = make_project(tmp_path_factory.mktemp("target") / "project", specs)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert run(["up", "--yes"]) == 0
    return folder


@pytest.fixture
def applied(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it; the current folder."""
    folder = shutil.copytree(template, tmp_path / "project")
    monkeypatch.chdir(folder)
    return folder


def change_all(project: Path) -> None:
    """Every table of the specs and the instance differ from what is applied."""
    specs = project / "specs"
    edit(specs / "demo.yaml", "engine:", "tags: {owner: data}\nengine:")
    edit(specs / "flights.yaml", "row_keys", "  - {name: gate, type: string}\nrow_keys")
    (specs / "planes.yaml").write_text(table("jets", more="renamed_from: air.planes\n"))
    (specs / "airports.yaml").unlink()
    edit(specs / "lakes.yaml", "row_keys", "description: Waters.\nrow_keys")
    for name in ("cities", "towns"):
        (specs / f"{name}.yaml").write_text(table(name, database="geo"))


@pytest.fixture
def changed(applied: Path) -> Path:
    change_all(applied)
    return applied


def actions(plan: Mapping[str, Any]) -> dict[str, str]:
    """What a plan does to which resource."""
    assert not plan["foreign"]
    return {each["address"]: each["action"] for each in plan["resources"]}


def ids(root: Path) -> dict[str, str]:
    """The addresses of the state store's tables, by id."""
    with closing(open_reader(str(root))) as store:
        return {table_id: entry.address for table_id, entry in store.instance().tables.items()}


def untouched(project: Path, *targets: str) -> dict[str, Any]:
    """All that is kept of resources that are no targets: Pulumi's state, the tables' logs and files, to the byte.

    The instance's log holds the names of all tables; of it only the instance's own properties count.
    """
    root = project / "lakes" / "demo"
    known = ids(root)
    checkpoint = json.loads((project / ".pulumi" / "stacks" / "lakes" / "dev.json").read_text())
    kept: dict[str, Any] = {}
    for resource in checkpoint["checkpoint"]["latest"]["resources"]:
        kind, name = resource["urn"].split("::")[2:]
        address = f"{kind.rpartition(':')[2].lower()}/{name}"
        if address not in targets:
            kept[f"pulumi {address}"] = resource
    with closing(sqlite3.connect(root / "_state" / "state.db")) as file:
        for log, version, body in file.execute("SELECT log, version, body FROM entries"):
            if log in known and known[log] not in targets:
                kept[f"log {log} {version}"] = body
    with closing(open_reader(str(root))) as store:
        if "instance/demo" not in targets:
            kept["instance"] = dict(store.instance().properties)
        for entry in store.instance().tables.values():
            if entry.address not in targets:
                kept[f"entry {entry.address}"] = entry
                for path in sorted((root / entry.location).rglob("*")):
                    if path.is_file():
                        kept[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
    return kept


# name: (targets, what is applied, and former names of that)
CASES: dict[str, tuple[list[str], list[str], list[str]]] = {
    "create_one_of_two": (["table/geo.cities"], ["table/geo.cities"], []),
    "update_one_of_two": (["table/air.flights"], ["table/air.flights"], []),
    "delete_by_its_address": (["table/geo.airports"], ["table/geo.airports"], []),
    "rename_by_the_new_name": (["table/air.jets"], ["table/air.jets"], ["table/air.planes"]),
    "rename_by_the_former_name": (["table/air.planes"], ["table/air.jets"], ["table/air.planes"]),
    "glob": (["table/geo.*"], [each for each in ALL if "/geo." in each], []),
    "several": (["table/air.flights", "table/*.towns"], ["table/air.flights", "table/geo.towns"], []),
    "instance_alone": (["instance/demo"], ["instance/demo"], []),
    "all_tables": (["table/*"], [each for each in ALL if each.startswith("table/")], ["table/air.planes"]),
}


@pytest.mark.parametrize("name", CASES)
def test_only_the_targets_are_changed(name: str, changed: Path, deployer: Deployer) -> None:
    given, wanted, former = CASES[name]
    options = [part for each in given for part in ("--target", each)]
    before = untouched(changed, *wanted, *former)

    plan = deployer("preview", "--json", *options).json
    assert actions(plan) == {address: ALL[address] for address in wanted}
    assert plan["targets"]["given"] == given and plan["targets"]["others"] == len(ALL) - len(wanted)
    assert set(plan["targets"]["addresses"]) == {*wanted, *former}
    assert untouched(changed, *wanted, *former) == before

    assert deployer("up", "--yes", *options).code == 0
    assert untouched(changed, *wanted, *former) == before
    assert actions(deployer("preview", "--json").json) == {
        address: action for address, action in ALL.items() if address not in wanted
    }
    for address in wanted:
        assert deployer("preview", "--exit-code", "--target", address).code == (1 if ALL[address] == "delete" else 0)


def test_a_table_needs_its_instance_until_that_is_there(project: Path, deployer: Deployer) -> None:
    plan = deployer("preview", "--json", "--target", "table/air.flights").json
    assert actions(plan) == {"instance/demo": "create", "table/air.flights": "create"}
    assert plan["targets"]["needed"] == "instance/demo" and plan["targets"]["others"] == 1
    assert deployer("up", "--yes", "--target", "table/air.flights").code == 0
    assert [each["name"] for each in deployer("tables", "--json").json["tables"]] == ["air.flights"]
    edit(project / "specs" / "demo.yaml", "engine:", "tags: {owner: data}\nengine:")
    plan = deployer("preview", "--json", "--target", "table/air.planes").json
    assert actions(plan) == {"table/air.planes": "create"} and plan["targets"]["needed"] is None


def test_a_table_needs_the_new_cluster_of_its_services(applied: Path, deployer: Deployer) -> None:
    edit(applied / "specs" / "demo.yaml", "engine:", "clusters: {night: {kind: local}}\nengine:")
    edit(applied / "specs" / "flights.yaml", "row_keys", "services: {compact: {cluster: night}}\nrow_keys")
    edit(applied / "specs" / "planes.yaml", "row_keys", "description: Aircraft.\nrow_keys")
    assert actions(deployer("preview", "--json", "--target", "table/air.planes").json) == {"table/air.planes": "update"}
    plan = deployer("preview", "--json", "--target", "table/air.flights").json
    assert actions(plan) == {"instance/demo": "update", "table/air.flights": "update"}
    assert {each["kind"] for each in plan["resources"][1]["changes"]} == {"CreateService"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        pytest.param("table/geo.citis", "no resource has this address; did you mean table/geo.cities?", id="mistyped"),
        pytest.param("geo.cities", "did you mean table/geo.cities?", id="without-its-kind"),
        pytest.param("geo.*", "no resource has an address like this; did you mean table/geo.*?", id="glob"),
        pytest.param("demo", "did you mean instance/demo?", id="instance"),
        pytest.param("zz/*", "write an address such as table/nyc.flights, or a glob: table/nyc.*", id="like-none"),
    ],
)
@pytest.mark.parametrize("command", ["preview", "up --yes", "preview --policy-only", "drift"])
def test_a_target_that_names_nothing_is_refused(
    given: str, said: str, command: str, applied: Path, deployer: Deployer
) -> None:
    (applied / "specs" / "cities.yaml").write_text(table("cities", database="geo"))
    ran = deployer(*command.split(), "--target", "table/geo.lakes", "--target", given)
    assert (ran.code, ran.out) == (1, "")
    assert f"instance/demo: --target {given}: " in ran.err and said in ran.err


def test_a_table_that_another_stack_manages_is_no_target(applied: Path, deployer: Deployer) -> None:
    with closing(open_store(str(applied / "lakes" / "demo"))) as store:
        entry = store.instance().by_name("air.flights")
        assert entry is not None
        owner = {**store.table(entry.table_id).properties.declared, "owner": "lakes/other"}
        store.commit(entry.table_id, [SetTableProperties({"declared": owner})])
    (applied / "specs" / "flights.yaml").unlink()
    shutil.rmtree(applied / ".pulumi")
    ran = deployer("preview", "--target", "table/air.flights")
    assert ran.code == 1 and "this stack neither declares nor manages it" in ran.err


@pytest.mark.parametrize("command", ["preview --exit-code", "up --yes"])
def test_a_table_that_cannot_be_read_stops_nothing_of_the_others(
    command: str, applied: Path, deployer: Deployer
) -> None:
    folder_is_gone(applied / "lakes" / "demo", "planes")
    edit(applied / "specs" / "flights.yaml", "row_keys", "description: Departures.\nrow_keys")
    ran = deployer(*command.split(), "--target", "table/air.flights")
    assert ran.code == (2 if command.startswith("preview") else 0), ran.err
    assert "planes" not in ran.out + ran.err
    assert deployer("preview", "--exit-code", "--target", "table/geo.*").code == 0
    target = deployer(*command.split(), "--target", "table/air.planes")
    assert target.code == (2 if command.startswith("preview") else 1)
    assert "table/air.planes" in target.out and "unreadable" in target.out


def test_data_is_destroyed_where_it_is_allowed_and_targeted(applied: Path, deployer: Deployer) -> None:
    add_rows(applied, "flights")
    add_rows(applied, "planes")
    for name in ("flights", "planes"):
        (applied / "specs" / f"{name}.yaml").write_text(table(name, more="deletion_protection: false\n"))
    assert deployer("up", "--yes", "--allow-destroy", "table/air.flights").code == 0
    for name in ("flights", "planes"):
        (applied / "specs" / f"{name}.yaml").unlink()
    before = untouched(applied, "table/air.planes")
    target = ("up", "--yes", "--target", "table/air.planes")
    refused = deployer(*target)
    assert refused.code == 3 and "--allow-destroy table/air.planes" in refused.out and "flights" not in refused.out
    mistaken = deployer(*target, "--allow-destroy", "table/air.planes", "--allow-destroy", "table/air.flights")
    assert mistaken.code == 1 and "target it too: --target table/air.flights" in mistaken.err
    assert deployer(*target, "--allow-destroy", "table/air.planes").code == 0
    assert untouched(applied, "table/air.planes") == before
    assert "air.planes" not in [each["name"] for each in deployer("tables", "--json").json["tables"]]


def test_a_saved_plan_applies_its_targets_alone(changed: Path, deployer: Deployer) -> None:
    before = untouched(changed, "table/geo.airports", "table/geo.cities")
    options = ("--target", "table/geo.cities", "--target", "table/geo.airports")
    assert deployer("preview", "--out", "p", *options).code == 0
    refused = deployer("up", "p", "--target", "table/geo.cities")
    assert refused.code == 1 and "--target and --allow-destroy are part of the plan" in refused.err
    (changed / "specs" / "lakes.yaml").unlink()  # what the specs say later is no part of it
    shown = deployer("up", "p", "--yes")
    assert shown.code == 0 and "Targeted: table/geo.cities, table/geo.airports; 5 other" in shown.out
    assert untouched(changed, "table/geo.airports", "table/geo.cities") == before


Edit = Callable[[Path, Deployer], object]


def describe(name: str) -> Edit:
    def change(project: Path, deployer: Deployer) -> None:
        edit(project / "specs" / f"{name}.yaml", "row_keys", "description: New.\nrow_keys")

    return change


# name: (what is applied after the plan of table/geo.* was saved, its exit code, and what that says)
LATER: dict[str, tuple[list[str], int, str]] = {
    "another_table": (["table/air.flights"], 0, "Done: 4 changed"),
    "the_instance": (["instance/demo"], 0, ""),
    "a_rename": (["table/air.jets"], 0, ""),
    "a_target": (["table/geo.cities"], 3, "table/geo.cities: exists: no → yes"),
}


@pytest.mark.parametrize("name", LATER)
def test_a_saved_plan_grows_stale_by_its_targets_alone(name: str, changed: Path, deployer: Deployer) -> None:
    applied_later, code, said = LATER[name]
    assert deployer("preview", "--out", "p", "--target", "table/geo.*").code == 0
    assert deployer("up", "--yes", "--target", applied_later[0]).code == 0
    ran = deployer("up", "p", "--yes")
    assert ran.code == code, ran.err
    assert code == 0 or said in ran.err
    left = {address for address in ALL if "/geo." not in address} - set(applied_later)
    assert code == 3 or set(actions(deployer("preview", "--json").json)) == left


def test_a_glob_of_a_saved_plan_takes_in_nothing_new(changed: Path, deployer: Deployer) -> None:
    assert deployer("preview", "--out", "p", "--target", "table/geo.c*").code == 0
    (changed / "specs" / "coasts.yaml").write_text(table("coasts", database="geo"))
    assert deployer("up", "--yes", "--target", "table/geo.coasts").code == 0
    assert deployer("up", "p").code == 0
    names = [each["name"] for each in deployer("tables", "--json").json["tables"]]
    assert "geo.coasts" in names and "geo.cities" in names and "geo.towns" not in names


@pytest.mark.parametrize(
    "targets",
    [
        pytest.param({"given": [], "addresses": [], "others": 1}, id="of-nothing"),
        pytest.param({"given": "table/*", "addresses": ["table/a.b"], "others": 1}, id="no-list"),
        pytest.param({"given": ["table/*"], "addresses": ["table/a.b"]}, id="without-a-number"),
        pytest.param([], id="no-object"),
    ],
)
def test_targets_of_another_shape_are_refused(targets: object, changed: Path, deployer: Deployer) -> None:
    """No targets at all would be the whole lake."""
    assert deployer("preview", "--out", "p", "--target", "table/geo.cities").code == 0
    document = json.loads((changed / "p").read_text())
    document["targets"] = targets
    (changed / "p").write_text(json.dumps({**document, "checksum": _checksum(document)}))
    ran = deployer("up", "p")
    assert ran.code == 1 and "the plan does not have its shape" in ran.err
    assert len(deployer("tables", "--json").json["tables"]) == 4


@pytest.mark.parametrize(
    ("form", "said"),
    [
        pytest.param("tree", "Targeted: table/geo.cities; 6 other resources are not targeted", id="tree"),
        pytest.param("markdown", "**targeted**: table/geo.cities; 6 other resources are not targeted", id="markdown"),
        pytest.param("html", '<span class="badge">targeted</span> table/geo.cities; 6 other', id="html"),
    ],
)
def test_every_form_says_that_it_is_targeted(form: str, said: str, changed: Path, deployer: Deployer) -> None:
    shown = deployer("preview", "--format", form, "--target", "table/geo.cities").out
    assert said in " ".join(shown.split()) and "flights" not in shown


def test_policies_judge_the_targets_alone(changed: Path, deployer: Deployer) -> None:
    (changed / "policies").mkdir()
    rules = "kind: Policy\nrule: required-tags\n" + approval("required-tags", "table/air.flights")
    (changed / "policies" / "rules.yaml").write_text(rules)
    edit(changed / "specs" / "lakes.yaml", "row_keys", "tags: {owner: data}\nrow_keys")
    ran = deployer("preview", "--policy-only", "--target", "table/geo.lakes")
    assert ran.code == 0 and "rules were asked about the targets alone: table/geo.lakes; 6 other" in " ".join(
        ran.out.split()
    )
    assert "is not used" not in ran.out  # it is of another resource
    assert deployer("preview", "--policy-only", "--target", "table/geo.c*").code == 3
    assert deployer("up", "--yes", "--target", "table/geo.lakes").code == 0
    assert deployer("up", "--yes", "--target", "table/geo.c*").code == 3


def test_specs_are_compared_by_targets_too(applied: Path, deployer: Deployer) -> None:
    git(applied, "init", "-q", "-b", "main")
    git(applied, "add", "-A", "specs", "stacks", "Pulumi.yaml")
    git(applied, "commit", "-qm", "first")
    change_all(applied)
    plan = deployer("preview", "--against", "main", "--json", "--target", "table/air.*").json
    assert actions(plan) == {"table/air.flights": "update", "table/air.jets": "update"}
    assert (plan["targets"]["others"], plan["targets"]["others_differ"]) == (5, 5)
    assert actions(deployer("preview", "--against", "main", "--json", "--target", "table/geo.airports").json) == {
        "table/geo.airports": "delete"
    }
    assert deployer("preview", "--against", "main", "--target", "table/no.*").code == 1


def test_what_an_earlier_run_left_undone_of_others_stays(changed: Path, deployer: Deployer) -> None:
    """A killed run began to create geo.towns: a run of other targets neither finishes nor forgets that."""
    file = changed / ".pulumi" / "stacks" / "lakes" / "dev.json"
    document = json.loads(file.read_text())
    latest = document["checkpoint"]["latest"]
    model = next(each for each in latest["resources"] if each["urn"].endswith("::geo.lakes"))
    begun = {name: value for name, value in model.items() if name not in ("id", "outputs")}
    begun["urn"] = begun["urn"].replace("geo.lakes", "geo.towns")
    begun["inputs"] = {**begun["inputs"], "name": "towns"}
    latest["pending_operations"] = [{"resource": begun, "type": "creating"}]
    file.write_text(json.dumps(document))
    before = untouched(changed, "table/geo.cities")
    assert deployer("up", "--yes", "--target", "table/geo.cities").code == 0
    assert untouched(changed, "table/geo.cities") == before
    latest = json.loads(file.read_text())["checkpoint"]["latest"]
    assert [each["resource"]["urn"][-9:] for each in latest["pending_operations"]] == ["geo.towns"]
    assert deployer("up", "--yes", "--target", "table/geo.towns").code == 0
    assert not json.loads(file.read_text())["checkpoint"]["latest"].get("pending_operations")
