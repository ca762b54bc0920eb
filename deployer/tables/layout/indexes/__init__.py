"""Builds, renames and drops of a table's indexes."""
