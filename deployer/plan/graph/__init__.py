"""The resource graph that a lake declares: one node for each resource, with its address and its dependencies.

`deployer.plan.assess`, `deployer.plan.diff`, `deployer.plan.planning`, `deployer.app`, `deployer.policy` and
`deployer.provider` may import it.
"""

from deployer.plan.graph.build import Graph, Node, build_graph

__all__ = ["Graph", "Node", "build_graph"]
