"""`--target` on a lake on AWS: resources of other providers take part with the instance, and with it alone."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.conftest import Deployer
from tests.projects import table
from tests.stacks.conftest import MakeProject
from tests.stacks.test_services import CLUSTERS, FLIGHTS, schedules

pytestmark = pytest.mark.full

PLANES = table("planes")


def parts(plan: Any) -> tuple[dict[str, str], set[str]]:
    """What a plan does to which resource of the lake, and the types of those of other providers."""
    actions = {each["address"]: each["action"] for each in plan["resources"]}
    return actions, {each["address"].partition(" ")[0] for each in plan["foreign"]}


def test_what_a_lake_stands_on_takes_part_where_the_targets_need_it(on_aws: MakeProject, deployer: Deployer) -> None:
    project = on_aws(CLUSTERS, tables=f"{table('flights', 'delay: int32')}---\n{PLANES}")
    target = ("--target", "table/air.flights")
    actions, foreign = parts(deployer("preview", "--json", *target).json)
    assert actions == {"instance/demo": "create", "table/air.flights": "create"}
    assert {"aws:s3/bucket:Bucket", "aws:dynamodb/table:Table"} <= foreign
    ran = deployer("up", "--yes", *target)
    assert ran.code == 0, ran.err
    assert [each["name"] for each in deployer("tables", "--json").json["tables"]] == ["air.flights"]

    # another table does not need what else of AWS differs
    demo = project / "specs" / "demo.yaml"
    demo.write_text(demo.read_text() + "tags: {team: data}\n")
    target = ("--target", "table/air.planes")
    assert parts(deployer("preview", "--json", *target).json) == ({"table/air.planes": "create"}, set())
    ran = deployer("up", "--yes", *target)
    assert ran.code == 0, ran.err

    # a schedule starts a service, and is applied with the instance
    (project / "specs" / "flights.yaml").write_text(f"{FLIGHTS}---\n{table('planes', 'seats: int16')}")
    plan = deployer("preview", "--json", "--target", "table/air.flights").json
    actions, foreign = parts(plan)
    assert actions == {"instance/demo": "update", "table/air.flights": "update"}
    assert plan["targets"]["needed"] == "instance/demo" and "aws:scheduler/schedule:Schedule" in foreign
    ran = deployer("up", "--yes", "--target", "table/air.flights")
    assert ran.code == 0, ran.err
    assert len(schedules(project)) == 3
    actions, foreign = parts(deployer("preview", "--json").json)
    assert actions == {"table/air.planes": "update"} and not foreign
