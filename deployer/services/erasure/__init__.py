"""Erasure: deletes rows, and then rewrites or removes every file below the root that still holds them.

A deletion alone hides rows: their files keep them, and so do earlier versions, savepoints, replaced datasets, indexes,
and the key ranges in the table's log. Each step here looks at what is stored and can be repeated after a crash; the
last one reads what is left, as proof.

`deployer.cli` and `deployer.table` may import it.
"""
