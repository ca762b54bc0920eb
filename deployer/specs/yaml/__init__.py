"""Spec files as nodes with positions. It knows nothing of what the nodes mean.

The rest of `deployer.specs` and every layer above `deployer.specs` may import it.
"""
