"""The files to load: the search for them, the detection of their formats, and their division into splits.

The rest of `deployer.tables.ingest`, the rest of `deployer.tables` and every layer above `deployer.tables` may import
it.
"""
