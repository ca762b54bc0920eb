"""Tables in Spark, by PySpark's Python data sources: `register(spark)`, then `spark.read.format("deployer")`, and
`write` and `writeStream` of DataFrames."""

from deployer.spark.arranged import arranged
from deployer.spark.source import DeployerDataSource, register

__all__ = ["DeployerDataSource", "arranged", "register"]
