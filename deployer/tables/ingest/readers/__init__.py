"""Readers that convert splits of files to checked rows, in the same way in this process and in Spark's tasks.

The rest of `deployer.tables.ingest`, the rest of `deployer.tables`, `deployer.services` and `deployer.spark` may import
it.
"""
