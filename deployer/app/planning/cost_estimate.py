"""The monthly cost in a plan, for lakes on AWS: where prices, assumptions and the region come from."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from deployer.app.workspace import Workspace

if TYPE_CHECKING:
    from deployer.cost.assumptions import Assumptions
    from deployer.cost.prices import PriceList
    from deployer.live.model import LiveLake
    from deployer.plan import Plan
    from deployer.specs.model import AwsSettings, InstanceSpec, Lake

#: the settings of a stack, `deployer:prices` and `deployer:assume`
PRICES, ASSUME = "prices", "assume"


@dataclass(frozen=True, slots=True)
class Basis:
    """The input of a stack's cost estimate. `managed` are the AWS resources that it declares."""

    prices: PriceList
    assumptions: Assumptions
    region: str | None
    managed: str


def cost_basis(
    workspace: Workspace, instance: InstanceSpec, prices: Path | None = None, assumed: Sequence[str] = ()
) -> Basis:
    """Combines settings of the stack with options, which take precedence. Raises InvalidInput, or NotFound for a
    missing file."""
    from deployer.cost.assumptions import assume
    from deployer.cost.prices import read_prices

    settings: Mapping[str, str] = workspace.values
    if prices is None and PRICES in settings:
        prices = workspace.file_of(PRICES)
    listed = [text for text in settings.get(ASSUME, "").split(",") if text.strip()]
    assume(listed, f"deployer:{ASSUME}")
    assumptions = assume([*listed, *assumed], "--assume")
    return Basis(read_prices(prices), assumptions, _region(instance), settings.get("aws", "all"))


def with_cost(workspace: Workspace, plan: Plan, lake: Lake, live: LiveLake, applied: AwsSettings | None = None) -> Plan:
    """Returns the plan with the change of the monthly cost. The plan is unchanged for a root on a disk, and when there
    is nothing to do. With targets, the cost is that of the targets and the instance.

    `applied` are the settings of the stack's AWS resources, which live state does not have.
    """
    if plan.is_empty or not lake.instance.root.startswith("s3://"):
        return plan
    from deployer.cost.difference import before_and_after, difference
    from deployer.cost.estimate import estimate
    from deployer.live.model import Unreadable

    basis = cost_basis(workspace, lake.instance)
    if live.instance is not None and live.read:
        live = replace(live, instance=replace(live.instance, aws=applied or lake.instance.aws))
    if plan.targets and live.instance is not None and live.instance.address not in plan.targets.addresses:
        lake = replace(lake, instance=live.instance)
    lake = replace(lake, tables=tuple(table for table in lake.tables if not isinstance(live.of(table), Unreadable)))
    before, after = (
        None if holding is None else estimate(holding, basis.region, basis.prices, basis.assumptions)
        for holding in before_and_after(plan, live, lake, basis.managed)
    )
    assert after is not None  # noqa: S101 -- the specs always have an estimate
    return replace(plan, cost=difference(before, after))


def _region(instance: InstanceSpec) -> str | None:
    """Returns the region of the specs, the environment or the profile; None where none is set."""
    declared = instance.state.options.get("region") or os.environ.get("AWS_REGION")
    if declared:
        return str(declared)
    from botocore.exceptions import BotoCoreError

    from deployer.platform.aws.session import aws_session

    try:
        found: str | None = aws_session().region_name
    except BotoCoreError:  # for example, the profile does not exist
        return None
    return found
