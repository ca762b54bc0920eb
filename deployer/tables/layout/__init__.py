"""Where the rows of a table are: its leaves and its indexes.

The rest of `deployer.tables` and every layer above `deployer.tables` may import it.
"""
