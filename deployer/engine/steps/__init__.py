"""Steps of one run: the operation for each resource, and their order.

`deployer.engine.embedded` and `deployer.engine.program` may import it.
"""
