"""The partition tree of a table: split points, sizes, and the split of leaves.

The rest of `deployer.tables` and every layer above `deployer.tables` may import it.
"""
