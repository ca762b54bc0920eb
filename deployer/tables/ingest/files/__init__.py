"""Files to load: found, their format known, and cut into splits.

The rest of `deployer.tables.ingest`, the rest of `deployer.tables` and every layer above `deployer.tables` may import
it.
"""
