"""Reads by Spark: the partitions of one version, planned on the driver, and the readers of rows and of changes.

`deployer.spark.source` and `deployer.spark.writing` may import it.
"""
