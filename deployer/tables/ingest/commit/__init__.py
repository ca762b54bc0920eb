"""Commits of appended fragments, alone or together with fragments of other writers.

`deployer.tables.ingest.attempt`, the rest of `deployer.tables` and every layer above `deployer.tables` may import it.
"""
