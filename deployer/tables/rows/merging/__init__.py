"""A merge: rows of a source matched with the table's by key, then inserted, updated and deleted in one commit.

`deployer.cli`, `deployer.spark` and `deployer.table` may import it.
"""
