"""Jobs on clusters of EMR and EMR Serverless: how they are started, followed and configured.

`deployer.compute.running`, `deployer.components`, `deployer.cost` and `spark_jobs` may import it.
"""
