"""The search for rows with the same row keys.

The rest of `deployer.tables.ingest`, the rest of `deployer.tables` and every layer above `deployer.tables` may import
it.
"""
