"""Plans of datasets: every kind of change is found, with its risk, its cause and why it is refused."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import get_args

import pytest
from rich.console import Console

from deployer.live.model import LiveDataset, LiveLake
from deployer.plan import Plan, diff, make_plan
from deployer.plan.assess.risk import Risk
from deployer.plan.changes import DatasetAlteration
from deployer.plan.graph import build_graph
from deployer.plan.render.json_form import plan_as_json
from deployer.plan.render.markdown import plan_as_markdown
from deployer.plan.render.terminal import plan_as_tree
from deployer.specs.model import InstanceSpec, Lake
from deployer.specs.types.dataset import BlueprintFile, DatasetService, DatasetSpec, RecordingSource, SearchIndexSpec

INSTANCE = InstanceSpec("demo", "lake")
TEXT = SearchIndexSpec("/log:TextLog:text", "tick", "text")
VECTOR = SearchIndexSpec("/camera:Embedding", "tick", "vector", {"metric": "L2"})
DRIVES = DatasetSpec("drives", (RecordingSource("recordings"),), search_indexes=(TEXT,))
OWNER = "project/dev"
CHANGED: dict[str, tuple[DatasetSpec, str]] = {
    "sources": (
        replace(DRIVES, recordings=(RecordingSource("s3://drives", "labels"),)),
        "sources recordings (layer base) → s3://drives (layer labels)",
    ),
    "no sources": (replace(DRIVES, recordings=()), "sources recordings (layer base) → no sources"),
    "register": (replace(DRIVES, register="manual"), "register auto → manual"),
    "new index": (
        replace(DRIVES, search_indexes=(VECTOR, TEXT)),
        "create search index /camera:Embedding: vector by tick (metric L2)",
    ),
    "no index": (replace(DRIVES, search_indexes=()), "drop search index /log:TextLog:text: text by tick"),
    "other index": (
        replace(DRIVES, search_indexes=(replace(TEXT, timeline="frame"),)),
        "rebuild search index /log:TextLog:text: text by tick → /log:TextLog:text: text by frame",
    ),
    "blueprint": (
        replace(DRIVES, default_blueprint=BlueprintFile("a.rbl", "0" * 64)),
        "default blueprint none → a.rbl",
    ),
    "retention": (replace(DRIVES, retention="7d"), "replaced versions kept until removed → 7d"),
    "services": (
        replace(DRIVES, services=(DatasetService("register", "*/10 * * * *"), DatasetService("maintain", "0 3 * * *"))),
        "services none → register at */10 * * * *, maintain at 0 3 * * *",
    ),
    "protection": (replace(DRIVES, deletion_protection=False), "turn deletion protection off"),
    "description": (replace(DRIVES, description="Of the fleet."), "description none → “Of the fleet.”"),
}


def plan(desired: DatasetSpec | None, live: LiveDataset | None, *, allow: tuple[str, ...] = ()) -> Plan:
    datasets = () if desired is None else (desired,)
    found = {} if live is None else {live.spec.address: live}
    lake = LiveLake(INSTANCE, owner=OWNER, read=True, datasets=found)
    return make_plan("demo", build_graph(Lake(INSTANCE, datasets=datasets)), lake, owner=OWNER, allow_destroy=allow)


def tree(made: Plan) -> str:
    console = Console(file=io.StringIO(), width=200)
    console.print(plan_as_tree(made))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("case", CHANGED)
def test_a_change_is_found_and_said_and_is_safe(case: str) -> None:
    desired, text = CHANGED[case]
    made = plan(desired, LiveDataset(DRIVES, "1" * 32, OWNER, 5))
    [change] = made.changes
    assert change.assessment.risk is Risk.SAFE
    assert change.refused is None
    assert text in tree(made)
    assert text.replace("/", "").split(" →")[0][:20] in plan_as_markdown(made).replace("\\", "").replace("/", "")
    [document] = [each for each in plan_as_json(made)["resources"] if each["address"] == "dataset/drives"]
    assert document["action"] == "update"


def test_every_kind_of_change_of_a_dataset_is_a_case() -> None:
    found = {type(change) for desired, _ in CHANGED.values() for change in diff(DRIVES, desired)}
    assert found == set(get_args(DatasetAlteration))


def test_the_same_declaration_changes_nothing() -> None:
    made = plan(DRIVES, LiveDataset(DRIVES, "1" * 32, OWNER, 5))
    assert made.is_empty


def test_a_new_dataset_is_described() -> None:
    text = "create dataset: recordings (layer base), register auto, search indexes /log:TextLog:text"
    assert text in tree(plan(DRIVES, None))


@pytest.mark.parametrize(
    ("layers", "allow", "risk", "refused"),
    [
        (0, (), Risk.SAFE, None),
        (5, (), Risk.DESTROYS, "destroys data; to allow it: --allow-destroy dataset/drives"),
        (5, ("dataset/drives",), Risk.DESTROYS, None),
    ],
)
def test_a_deletion_needs_permission_where_layers_are_registered(
    layers: int, allow: tuple[str, ...], risk: Risk, refused: str | None
) -> None:
    [change] = plan(None, LiveDataset(DRIVES, "1" * 32, OWNER, layers), allow=allow).changes
    assert (change.assessment.risk, change.refused) == (risk, refused)


def test_datasets_of_other_stacks_and_of_clients_are_left_alone() -> None:
    assert plan(None, LiveDataset(DRIVES, "1" * 32, "project/prod", 5)).is_empty
    assert plan(None, LiveDataset(DRIVES, "1" * 32, "", 5)).is_empty


def test_the_dataset_of_another_stack_is_not_changed() -> None:
    [change] = plan(replace(DRIVES, retention="7d"), LiveDataset(DRIVES, "1" * 32, "project/prod")).changes
    assert change.refused == "stack project/prod manages the dataset: give this one another name"
