"""A lake: its instance and its tables, nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi

from deployer.plan.graph import build_graph
from deployer.provider.sdk import Instance, Table
from deployer.specs.model import Lake as LakeSpec
from deployer.specs.model import TableSpec


@dataclass(frozen=True, slots=True)
class LakeTables:
    """The resources of the provider `lake`; tables by their full names."""

    instance: Instance
    tables: Mapping[str, Table]


def declare_tables(lake: LakeSpec, needs: Sequence[pulumi.Resource] = (), prefix: str = "") -> LakeTables:
    """Declare every node of the lake's graph. `needs` must exist before the lake does; `prefix` begins their names in
    Pulumi."""
    instance = Instance(lake.instance, pulumi.ResourceOptions(depends_on=list(needs)), prefix=prefix)
    specs = [node.spec for node in build_graph(lake).nodes.values() if isinstance(node.spec, TableSpec)]
    return LakeTables(instance, {spec.full_name: Table(instance, spec, prefix=prefix) for spec in specs})
