"""Erasure: deletes rows, and then rewrites or removes every file below the root that still holds them.

A deletion only hides rows: their files still have them, as do earlier versions, savepoints, replaced datasets, indexes,
and the key ranges in the table's log. Each step reads what is stored and can be repeated after a crash; the last step
reads the remaining data, as proof.

`deployer.cli` and `deployer.table` may import it.
"""
