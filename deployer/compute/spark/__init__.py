"""Spark in this process: Java, sessions, progress, failures, and Python processes that run several tasks.

`deployer.compute.clusters` and every layer above `deployer.compute` may import it.
"""
