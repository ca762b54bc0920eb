"""Reads spec files as nodes with positions. This package does not depend on the meaning of the nodes.

The rest of `deployer.specs` and every layer above `deployer.specs` may import it.
"""
