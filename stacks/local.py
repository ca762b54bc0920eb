"""A lake on local disk: its instance and its tables, nothing else."""

import pulumi

from deployer.graph import build_graph
from deployer.provider.sdk import Instance, Table
from deployer.specs.model import Lake, TableSpec


def declare_lake(lake: Lake) -> None:
    """Declare every node of the lake's graph, and export where the lake is."""
    instance = Instance(lake.instance)
    for node in build_graph(lake).nodes.values():
        if isinstance(node.spec, TableSpec):
            Table(instance, node.spec)
    pulumi.export("root", instance.root)
