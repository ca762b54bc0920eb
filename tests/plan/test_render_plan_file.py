"""Saved plans: what is written is read back, the same facts never move, and each kind of edit is noticed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from deployer.errors import Corrupt, DeployerError, InvalidInput
from deployer.live.model import LiveLake, TableStatistics
from deployer.plan import make_plan
from deployer.plan.render.json_form import plan_as_json
from deployer.plan.saved.file import SavedPlan, facts, moved, read_plan, write_plan
from deployer.plan.targeting.targets import Targets
from deployer.specs.model import AwsSettings, Lake, TableSpec
from tests.plan.lakes import EMPTY, FLIGHTS, INSTANCE, LIVE, OWNER, graph
from tests.plan.test_diff import INSTANCES, TABLES


def _with_fitting_points(spec: TableSpec) -> TableSpec:
    """The table with split points of its own key."""
    match spec.row_keys:
        case ():
            return replace(spec, split_points=())
        case ("flight", *_):
            return replace(spec, split_points=((7,),))
        case (_,):
            return replace(spec, split_points=(("DL",),))
        case _:
            return spec


LAKES = {
    **{
        # Only split points that fit the keys: others are no spec that loads.
        name: Lake(INSTANCE, (_with_fitting_points(spec), EMPTY))
        for name, spec in TABLES.items()
    },
    **{name: Lake(spec, (FLIGHTS, EMPTY)) for name, spec in INSTANCES.items()},
    "bytes_and_large_numbers": Lake(INSTANCE, (replace(FLIGHTS, split_points=(("\u00e4\u2028", 2**60),)),)),
    "nothing_declared": Lake(INSTANCE),
    "settings_of_aws": Lake(replace(INSTANCE, aws=AwsSettings("managed", (5, 3)))),
}


def saved(lake: Lake, live: LiveLake = LIVE, targets: Targets | None = None) -> SavedPlan:
    plan = make_plan("demo", graph(*lake.tables, instance=lake.instance), live, owner=OWNER)
    plan = replace(plan, targets=targets)
    read = facts(plan, live, lake, OWNER)
    return SavedPlan("1.0", OWNER, "specs", ("table/a.b",), lake, read, plan_as_json(plan), targets)


@pytest.mark.parametrize("name", LAKES)
def test_a_plan_is_read_back_as_it_was_written(name: str, tmp_path: Path) -> None:
    before = saved(LAKES[name])
    write_plan(tmp_path / "plan", before)
    after = read_plan(tmp_path / "plan", deployer="1.0")
    assert after == before
    assert after.desired.instance.aws == before.desired.instance.aws
    assert moved(after.read, saved(after.desired).read, LIVE) == []
    assert [file.name for file in tmp_path.iterdir()] == ["plan"]


def test_of_an_instance_that_is_no_target_only_its_place_counts(tmp_path: Path) -> None:
    targets = Targets((FLIGHTS.address,), frozenset({FLIGHTS.address}), others=2)
    before = saved(LAKES["offline"], targets=targets)
    write_plan(tmp_path / "plan", before)
    assert read_plan(tmp_path / "plan", deployer="1.0") == before
    assert set(before.read[INSTANCE.address]) == {"root", "state"}
    for instance, names in (
        (replace(INSTANCE, tags={}, engine="cli", description="Other."), []),
        (replace(INSTANCE, root="lakes/elsewhere"), ["root"]),
    ):
        live = replace(LIVE, instance=instance)
        found = moved(before.read, saved(LAKES["offline"], live, targets).read, live)
        assert [each.name for each in found] == names


def with_live(spec: TableSpec, **more: object) -> LiveLake:
    table = replace(LIVE.tables[FLIGHTS.address], spec=spec, **more)  # type: ignore[arg-type]
    return replace(LIVE, tables={**LIVE.tables, FLIGHTS.address: table})


@pytest.mark.parametrize("name", [name for name, spec in TABLES.items() if spec.address == FLIGHTS.address][1:])
def test_every_change_of_a_live_table_is_a_move(name: str) -> None:
    desired = LAKES["offline"]
    before = saved(desired)
    live = with_live(replace(TABLES[name], renamed_from=None))
    found = moved(before.read, saved(desired, live).read, live)
    assert found
    assert {each.address for each in found} == {FLIGHTS.address}


MOVES: dict[str, tuple[LiveLake, list[str]]] = {
    "rows_and_versions": (with_live(FLIGHTS, statistics=TableStatistics(5, 6, 7, 8, 9, 10, 1)), []),
    "generation": (with_live(FLIGHTS, statistics=TableStatistics(generation=2)), ["generation"]),
    "created_again": (with_live(FLIGHTS, table_id="0" * 32), ["id"]),
    "owner": (with_live(FLIGHTS, owner="lakes/prod"), ["owner"]),
    "instance": (replace(LIVE, instance=replace(INSTANCE, description="Other.")), ["description"]),
    "gone": (replace(LIVE, tables={EMPTY.address: LIVE.tables[EMPTY.address]}), ["exists"]),
    "of_others": (
        replace(LIVE, tables={**LIVE.tables, "table/x.y": replace(LIVE.tables[EMPTY.address], owner="other/dev")}),
        [],
    ),
    "rows_where_none_may_be": (
        replace(
            LIVE,
            tables={
                **LIVE.tables,
                EMPTY.address: replace(LIVE.tables[EMPTY.address], statistics=TableStatistics(rows=1)),
            },
        ),
        ["rows"],
    ),
}


@pytest.mark.parametrize("name", MOVES)
def test_what_moved_is_named(name: str) -> None:
    desired = Lake(INSTANCE, (TABLES["offline"],))  # the empty table is to be deleted
    live, names = MOVES[name]
    assert [each.name for each in moved(saved(desired).read, saved(desired, live).read, live)] == names


def test_every_byte_that_is_changed_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "plan"
    write_plan(file, saved(LAKES["offline"]))
    text = file.read_text(encoding="utf-8")
    for at in range(0, len(text), 37):
        if text[at].isspace():
            continue
        changed = text[:at] + ("x" if text[at] != "x" else "y") + text[at + 1 :]
        file.write_text(changed, encoding="utf-8")
        with pytest.raises(DeployerError) as caught:
            read_plan(file, deployer="1.0")
        assert isinstance(caught.value, (Corrupt, InvalidInput))


def test_what_was_left_out_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "plan"
    write_plan(file, saved(LAKES["offline"]))
    document = json.loads(file.read_text(encoding="utf-8"))
    for name in document:
        file.write_text(json.dumps({key: value for key, value in document.items() if key != name}), encoding="utf-8")
        with pytest.raises((Corrupt, InvalidInput)):
            read_plan(file, deployer="1.0")
