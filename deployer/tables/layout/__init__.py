"""The layout of a table: its leaves and its indexes.

The rest of `deployer.tables` and every layer above `deployer.tables` may import it.
"""
