"""Tables in Spark, by PySpark's Python data sources: `register(spark)`, then `spark.read.format("deployer")`."""

from deployer.spark.source import DeployerDataSource, register

__all__ = ["DeployerDataSource", "register"]
