"""Loads of files. Their rows are checked, sorted into leaves, written as fragments and committed.

A load runs in this process or with Spark.

The rest of `deployer.tables` and every layer above `deployer.tables` may import it.
"""
