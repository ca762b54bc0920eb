"""Converts rows of files to rows of the table, and sets rows that do not fit aside with their reasons.

The rest of `deployer.tables.ingest`, the rest of `deployer.tables` and every layer above `deployer.tables` may import
it.
"""
