"""Loads values of columns from files. A primary key matches the rows of the files with the rows of the table.

`deployer.columns.jobs`, `deployer.cli`, `deployer.table` and `spark_jobs` may import it.
"""
