"""Steps of one run: what becomes of each resource, in which order.

`deployer.engine.embedded` and `deployer.engine.program` may import it.
"""
