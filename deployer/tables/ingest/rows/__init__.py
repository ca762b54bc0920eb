"""Converts rows of files to rows of the table; rows that do not fit are set aside with their reasons.

The rest of `deployer.tables.ingest`, the rest of `deployer.tables` and every layer above `deployer.tables` may import
it.
"""
