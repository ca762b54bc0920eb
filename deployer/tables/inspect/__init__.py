"""Facts about a table without reading rows: versions, sizes, and protection.

The rest of `deployer.tables` and every layer above `deployer.tables` may import it.
"""
