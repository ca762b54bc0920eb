"""The data files of a table, as the state stores them.

`deployer.state.model.entities` and every layer above `deployer.state` may import it.
"""
