"""Tables in Spark, by PySpark's Python data sources: `register(spark)`, then `spark.read.format("deployer")`,
`readStream` of a table's changes, and `write` and `writeStream` of DataFrames.

Programs import it; no other package may import it.
"""

from deployer.spark.apply import apply_changes
from deployer.spark.arranged import arranged
from deployer.spark.source import DeployerDataSource, register

__all__ = ["DeployerDataSource", "apply_changes", "arranged", "register"]
