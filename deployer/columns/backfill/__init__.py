"""Backfills: runs that compute the values of a computed column for the rows that lack them."""
