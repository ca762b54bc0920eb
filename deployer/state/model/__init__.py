"""The state of an instance and of a table, as values without I/O.

The rest of `deployer.state` and every layer above `deployer.state` may import it.
"""
