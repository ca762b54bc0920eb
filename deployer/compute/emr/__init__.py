"""Clusters of EMR and EMR Serverless.

`deployer.compute.running`, `deployer.components`, `deployer.cost` and `spark_jobs` may import it.
"""
