"""The resource graph that a lake declares: one node a resource, each with its address and what it depends on."""

from deployer.plan.graph.build import Graph, Node, build_graph

__all__ = ["Graph", "Node", "build_graph"]
