"""Builds columns, indexes, services and clusters from nodes whose shape was checked.

The rest of `deployer.specs` and every layer above `deployer.specs` may import it.
"""
