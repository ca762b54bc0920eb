"""Merges: one commit inserts, updates and deletes rows after matching the rows of a source with the table's by key.

`deployer.cli`, `deployer.spark` and `deployer.table` may import it.
"""
