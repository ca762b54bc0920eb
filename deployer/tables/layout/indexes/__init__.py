"""Builds, renames and drops of a table's indexes.

The rest of `deployer.tables` and every layer above `deployer.tables` may import it.
"""
