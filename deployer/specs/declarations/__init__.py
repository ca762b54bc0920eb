"""From nodes whose shape was checked to columns, indexes, services and clusters.

The rest of `deployer.specs` and every layer above `deployer.specs` may import it.
"""
