"""The commands of `deployer`: each has options, one call of `deployer.app` or of a layer below, and one print.

A module imports Spark, Lance and Pulumi only in the command that uses them.

`deployer.__main__` may import it.
"""
