"""Reads by Spark: the partitions of one version, planned on the driver, and the readers of rows and of changes.

`deployer.spark.source` may import it.
"""
