"""Definitions of columns by calls: computed columns that are added, changed, dropped and shown.

`deployer.cli` and `deployer.table` may import it.
"""
