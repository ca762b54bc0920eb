"""`--target`: a run changes what it names and nothing else, in the lake, in the state store and in Pulumi's state."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from deployer.live.model import LiveTable
from deployer.plan.saved.file import _checksum
from deployer.provider.resources.run_context import Stores
from deployer.state import open_store
from deployer.state.log.updates import SetTableProperties
from deployer.state.reader import StateReader
from tests.cli.conftest import Deployer
from tests.cli.target_project import ALL, actions, change_all, untouched
from tests.cli.test_policy import approval
from tests.cli.test_review_plans import add_rows, edit, git
from tests.projects import table
from tests.security.foreign.lake_damage import folder_is_gone


@pytest.fixture
def changed(four_applied: Path) -> Path:
    change_all(four_applied)
    return four_applied


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


@pytest.mark.thinned(3, to="full")
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


def test_a_table_needs_the_new_cluster_of_its_services(four_applied: Path, deployer: Deployer) -> None:
    edit(four_applied / "specs" / "demo.yaml", "engine:", "clusters: {night: {kind: local}}\nengine:")
    edit(four_applied / "specs" / "flights.yaml", "row_keys", "services: {compact: {cluster: night}}\nrow_keys")
    edit(four_applied / "specs" / "planes.yaml", "row_keys", "description: Aircraft.\nrow_keys")
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
    given: str, said: str, command: str, four_applied: Path, deployer: Deployer
) -> None:
    (four_applied / "specs" / "cities.yaml").write_text(table("cities", database="geo"))
    ran = deployer(*command.split(), "--target", "table/geo.lakes", "--target", given)
    assert (ran.code, ran.out) == (1, "")
    assert f"instance/demo: --target {given}: " in ran.err and said in ran.err


def test_a_table_that_another_stack_manages_is_no_target(four_applied: Path, deployer: Deployer) -> None:
    with closing(open_store(str(four_applied / "lakes" / "demo"))) as store:
        entry = store.instance().by_name("air.flights")
        assert entry is not None
        owner = {**store.table(entry.table_id).properties.declared, "owner": "lakes/other"}
        store.commit(entry.table_id, [SetTableProperties({"declared": owner})])
    (four_applied / "specs" / "flights.yaml").unlink()
    shutil.rmtree(four_applied / ".pulumi")
    ran = deployer("preview", "--target", "table/air.flights")
    assert ran.code == 1 and "this stack neither declares nor manages it" in ran.err


@pytest.mark.parametrize("command", ["preview --exit-code", "up --yes"])
def test_a_table_that_cannot_be_read_stops_nothing_of_the_others(
    command: str, four_applied: Path, deployer: Deployer
) -> None:
    folder_is_gone(four_applied / "lakes" / "demo", "planes")
    edit(four_applied / "specs" / "flights.yaml", "row_keys", "description: Departures.\nrow_keys")
    ran = deployer(*command.split(), "--target", "table/air.flights")
    assert ran.code == (2 if command.startswith("preview") else 0), ran.err
    assert "planes" not in ran.out + ran.err
    assert deployer("preview", "--exit-code", "--target", "table/geo.*").code == 0
    target = deployer(*command.split(), "--target", "table/air.planes")
    assert target.code == (2 if command.startswith("preview") else 1)
    assert "table/air.planes" in target.out and "unreadable" in target.out


def test_data_is_destroyed_where_it_is_allowed_and_targeted(four_applied: Path, deployer: Deployer) -> None:
    add_rows(four_applied, "flights")
    add_rows(four_applied, "planes")
    for name in ("flights", "planes"):
        (four_applied / "specs" / f"{name}.yaml").write_text(table(name, more="deletion_protection: false\n"))
    assert deployer("up", "--yes", "--allow-destroy", "table/air.flights").code == 0
    for name in ("flights", "planes"):
        (four_applied / "specs" / f"{name}.yaml").unlink()
    before = untouched(four_applied, "table/air.planes")
    target = ("up", "--yes", "--target", "table/air.planes")
    refused = deployer(*target)
    assert refused.code == 3 and "--allow-destroy table/air.planes" in refused.out and "flights" not in refused.out
    mistaken = deployer(*target, "--allow-destroy", "table/air.planes", "--allow-destroy", "table/air.flights")
    assert mistaken.code == 1 and "target it too: --target table/air.flights" in mistaken.err
    assert deployer(*target, "--allow-destroy", "table/air.planes").code == 0
    assert untouched(four_applied, "table/air.planes") == before
    assert "air.planes" not in [each["name"] for each in deployer("tables", "--json").json["tables"]]


def test_a_saved_plan_applies_its_targets_alone(changed: Path, deployer: Deployer) -> None:
    before = untouched(changed, "table/geo.airports", "table/geo.cities")
    options = ("--target", "table/geo.cities", "--target", "table/geo.airports")
    assert deployer("preview", "--out", "p", *options).code == 0
    refused = deployer("up", "p", "--target", "table/geo.cities")
    assert refused.code == 1 and "--target, --allow-destroy and --delete-savepoints are part of the plan" in refused.err
    (changed / "specs" / "lakes.yaml").unlink()  # what the specs say later is no part of it
    shown = deployer("up", "p", "--yes")
    assert shown.code == 0 and "Targeted: table/geo.cities, table/geo.airports; 5 other" in shown.out
    assert untouched(changed, "table/geo.airports", "table/geo.cities") == before


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
        pytest.param({"given": ["table/*"], "addresses": ["a:b:C/d"], "others": 1}, id="of-no-kind"),
        pytest.param({"given": ["table/*"], "addresses": ["table/*"], "others": 1}, id="of-globs"),
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
    assert ran.code == 1 and "the plan has an unexpected structure" in ran.err
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
    assert ran.code == 0 and "the rules checked the targets only: table/geo.lakes; 6 other" in " ".join(ran.out.split())
    assert "is not used" not in ran.out  # it is of another resource
    document = deployer("preview", "--policy-only", "--json", "--target", "table/geo.lakes").json
    assert document["targets"]["addresses"] == ["table/geo.lakes"] and not document["policy"]["violations"]
    assert deployer("preview", "--policy-only", "--target", "table/geo.c*").code == 3
    assert deployer("up", "--yes", "--target", "table/geo.lakes").code == 0
    assert deployer("up", "--yes", "--target", "table/geo.c*").code == 3


def test_specs_are_compared_by_targets_too(four_applied: Path, deployer: Deployer) -> None:
    git(four_applied, "init", "-q", "-b", "main")
    git(four_applied, "add", "-A", "specs", "stacks", "Pulumi.yaml")
    git(four_applied, "commit", "-qm", "first")
    change_all(four_applied)
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


GROUPED = """
import pulumi
from deployer.components import project_lake
from deployer.provider.sdk import Instance, Table

lake = project_lake()
instance = Instance(lake.instance)
group = pulumi.ComponentResource("my:index:Group", "tables")
for table in lake.tables:
    Table(instance, table, pulumi.ResourceOptions(parent=group))
"""


def test_a_new_table_inside_of_a_component_is_not_passed_over_in_silence(changed: Path, deployer: Deployer) -> None:
    """The program of a project may group its tables; what exists is found by Pulumi's state."""
    (changed / "stacks" / "__main__.py").write_text(GROUPED, encoding="utf-8")
    ran = deployer("preview", "--target", "table/geo.cities")
    assert ran.code == 3 and "table/geo.cities: the program declares it inside of a component" in ran.err


def test_only_the_logs_of_targets_are_read(four_applied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider that is asked for another table reads the others then, and does not take it for gone."""
    asked: list[set[str]] = []
    whole = StateReader.each_table

    def counted(reader: StateReader, table_ids: Iterable[str], *more: Any) -> Any:
        asked.append(set(table_ids))
        return whole(reader, asked[-1], *more)

    monkeypatch.setattr(StateReader, "each_table", counted)
    stores = Stores(four_applied)
    known = {address: table_id for table_id, address in stores.addresses("lakes/demo").items()}
    flights = known["table/air.flights"]
    live = stores.live_lake("lakes/demo", {"table/air.flights", "table/no.such"})
    assert list(live.tables) == ["table/air.flights"]
    assert stores.live_table("lakes/demo", flights) == live.tables["table/air.flights"]
    assert [each for each in asked if each] == [{flights}]
    other = stores.live_table("lakes/demo", known["table/geo.lakes"])
    assert isinstance(other, LiveTable) and other.spec.name == "lakes"
    assert stores.live_table("lakes/demo", "0" * 32) is None
    assert asked[-1] == set(known.values())
    stores.close()
