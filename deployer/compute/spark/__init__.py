"""Spark in this process: Java, sessions, progress and failures.

`deployer.compute.clusters` and every layer above `deployer.compute` may import it.
"""
