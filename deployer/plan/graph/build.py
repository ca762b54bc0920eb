"""Builds the desired resource graph from specs. Every node comes after its dependencies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from deployer.specs.model import InstanceSpec, Lake, TableSpec
from deployer.specs.types.dataset import DatasetSpec

Spec = InstanceSpec | TableSpec | DatasetSpec
NodeKind = Literal["Instance", "Table", "View", "Dataset"]


@dataclass(frozen=True, slots=True)
class Node:
    """One resource: its spec and the addresses that must exist before it."""

    spec: Spec
    depends_on: tuple[str, ...] = ()

    @property
    def address(self) -> str:
        return self.spec.address

    @property
    def kind(self) -> NodeKind:
        if isinstance(self.spec, InstanceSpec):
            return "Instance"
        if isinstance(self.spec, DatasetSpec):
            return "Dataset"
        return "Table" if self.spec.view is None else "View"


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes by address, dependencies first."""

    nodes: Mapping[str, Node]

    def spec(self, address: str) -> Spec | None:
        node = self.nodes.get(address)
        return node.spec if node else None


def build_graph(lake: Lake) -> Graph:
    """Returns the graph of a lake: the instance, its tables by address, its views, and its datasets of recordings. Each
    needs the instance; a view also needs the tables and views that it reads."""
    instance = Node(lake.instance)
    nodes = {instance.address: instance}
    in_order = sorted(lake.tables, key=lambda table: table.address)
    nodes |= {table.address: Node(table, (instance.address,)) for table in in_order if table.view is None}
    for view in in_dependency_order([table for table in in_order if table.view is not None]):
        sources = [f"table/{name}" for name in (view.view.tables if view.view is not None else ())]
        nodes[view.address] = Node(view, (instance.address, *(each for each in sources if each in nodes)))
    datasets = sorted(lake.datasets, key=lambda dataset: dataset.address)
    nodes |= {dataset.address: Node(dataset, (instance.address,)) for dataset in datasets}
    return Graph(nodes)


def in_dependency_order(views: Iterable[TableSpec]) -> list[TableSpec]:
    """Returns the views, each after those that it reads, otherwise in their order. Views of a cycle come last."""
    waiting = list(views)
    order: list[TableSpec] = []
    while waiting:
        pending = {view.full_name for view in waiting}
        ready = [view for view in waiting if view.view is None or not pending.intersection(view.view.tables)]
        order += ready or waiting
        waiting = [view for view in waiting if ready and view not in ready]
    return order
