"""A lake: its instance and its tables, nothing else."""

from collections.abc import Sequence

import pulumi

from deployer.graph import build_graph
from deployer.provider.sdk import Instance, Table
from deployer.specs.model import Lake, TableSpec


def declare_lake(lake: Lake, needs: Sequence[pulumi.Resource] = ()) -> None:
    """Declare every node of the lake's graph, and export where the lake is. `needs` must exist before the lake does."""
    instance = Instance(lake.instance, pulumi.ResourceOptions(depends_on=list(needs)))
    for node in build_graph(lake).nodes.values():
        if isinstance(node.spec, TableSpec):
            Table(instance, node.spec)
    pulumi.export("root", instance.root)
