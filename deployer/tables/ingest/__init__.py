"""Loads: rows of files are checked, sorted into leaves, written as fragments and committed, here or by Spark.

The rest of `deployer.tables` and every layer above `deployer.tables` may import it.
"""
