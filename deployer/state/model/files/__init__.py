"""The files of a table, and what the state knows of each.

`deployer.state.model.entities` and every layer above `deployer.state` may import it.
"""
