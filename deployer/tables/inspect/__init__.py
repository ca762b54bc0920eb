"""Facts about a table without reading rows: versions, sizes, and what protects it.

The rest of `deployer.tables` and every layer above `deployer.tables` may import it.
"""
