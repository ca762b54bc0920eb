"""Specs to the desired resource graph, in an order in which every node comes after what it depends on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from deployer.specs.model import InstanceSpec, Lake, TableSpec

Spec = InstanceSpec | TableSpec


@dataclass(frozen=True, slots=True)
class Node:
    """One resource: its spec and the addresses that must exist before it."""

    spec: Spec
    depends_on: tuple[str, ...] = ()

    @property
    def address(self) -> str:
        return self.spec.address


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes by address, dependencies first."""

    nodes: Mapping[str, Node]

    def spec(self, address: str) -> Spec | None:
        node = self.nodes.get(address)
        return node.spec if node else None


def build_graph(lake: Lake) -> Graph:
    """Returns the graph of a lake: the instance, then its tables by address, each of which needs the instance."""
    instance = Node(lake.instance)
    tables = (Node(table, (instance.address,)) for table in sorted(lake.tables, key=lambda table: table.address))
    return Graph({node.address: node for node in (instance, *tables)})
