"""Backfills: runs that compute the values of a computed column for the rows that lack them.

`deployer.columns.jobs` and every layer above `deployer.columns` may import it.
"""
