"""`cost`: the expected monthly cost of a lake on AWS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deployer.app.live_state import read_live
from deployer.app.planning.cost_estimate import Basis, cost_basis
from deployer.app.reporter import SILENT, Reporter
from deployer.app.stack.fast_path import read_recorded
from deployer.app.workspace import Workspace, open_workspace
from deployer.cost.difference import declared_holding
from deployer.cost.estimate import Estimate, Holding, estimate
from deployer.cost.rendering import as_json
from deployer.errors import DeployerError
from deployer.platform.system.progress import OnProgress, Progress, no_progress
from deployer.platform.text import masking
from deployer.specs.model import InstanceSpec, Lake


@dataclass(frozen=True, slots=True)
class CostResult:
    """The expected cost of the lake `instance`; the estimate has no lines for a root on a disk."""

    instance: str
    estimate: Estimate

    def to_json(self) -> dict[str, Any]:
        """Returns the document that `deployer cost --json` prints."""
        return as_json(self.instance, self.estimate)


def cost(
    project: Path | str | None = None,
    stack: str = "dev",
    specs: Path | str | None = None,
    *,
    prices: Path | str | None = None,
    assume: Sequence[str] = (),
    reporter: Reporter = SILENT,
    on_progress: OnProgress = no_progress,
) -> CostResult:
    """Estimates the monthly cost of the lake, from its specs and its current contents.

    `prices` is a file of prices; by default that of the stack's `deployer:prices`, or the prices of this release.
    `assume` are texts such as `runs_per_day=4`, which override `deployer:assume`. Where the lake cannot be read, its
    contents are unknown, and the reporter receives the reason. `on_progress` receives how many tables are read.

    Raises InvalidInput for a wrong assumption, NotFound for a missing file of prices.
    """
    with masking.scope():
        workspace = open_workspace(project, stack, specs)
        on_progress(Progress("reading the specs", 0, None, ""))
        lake = workspace.lake()
        basis = cost_basis(workspace, lake.instance, None if prices is None else Path(prices), assume)
        holding = _holding(workspace, lake, basis, reporter, on_progress)
        return CostResult(lake.instance.name, estimate(holding, basis.region, basis.prices, basis.assumptions))


def _holding(workspace: Workspace, lake: Lake, basis: Basis, reporter: Reporter, on_progress: OnProgress) -> Holding:
    """Returns the declared resources with their current sizes. Where the sizes cannot be read, they are unknown, and
    the reporter receives a note."""
    root = lake.instance.root
    if not root.startswith("s3://"):
        return Holding(lake.instance)
    try:
        live = read_live(root, on_progress=on_progress).with_applied(read_recorded(workspace.stack_ref).ids)
    except DeployerError as error:
        reporter.note(f"the size of the lake is unknown: {error}")
        return declared_holding(lake, None, None, basis.managed)
    state = 0 if live.instance is None else _state_bytes(lake.instance, basis.region)
    return declared_holding(lake, live, state, basis.managed)


def _state_bytes(instance: InstanceSpec, region: str | None) -> int | None:
    """Returns the size in bytes of the state's table as DynamoDB reports it; None where it cannot be read. DynamoDB
    updates the size every six hours."""
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError

    from deployer.platform.aws.session import aws_session
    from deployer.state.backends.dynamodb.table import table_name

    name = str(instance.state.options.get("table") or table_name(instance.root, instance.name))
    config = Config(connect_timeout=4, read_timeout=6, retries={"total_max_attempts": 2})
    try:
        client = aws_session().client("dynamodb", region_name=region, config=config)
        size: int | None = client.describe_table(TableName=name)["Table"].get("TableSizeBytes")
    except (BotoCoreError, ClientError):
        return None
    return size
