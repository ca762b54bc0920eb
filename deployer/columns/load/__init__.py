"""Loads values of columns from files, by the primary key that their rows share with those of the table.

`deployer.columns.jobs`, `deployer.cli`, `deployer.table` and `spark_jobs` may import it.
"""
