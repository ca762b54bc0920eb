"""Reads of rows by key, range, condition and SQL.

The rest of `deployer.tables` and every layer above `deployer.tables` may import it.
"""
