"""Spark in this process: Java, sessions, progress, failures, and Python worker processes that run several tasks.

`deployer.compute.clusters` and every layer above `deployer.compute` may import it.
"""
