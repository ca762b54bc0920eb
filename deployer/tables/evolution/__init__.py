"""Changes of tables that exist: of their schema, and of all that a new dataset is needed for.

`deployer.tables.admin`, `deployer.tables.maintenance` and every layer above `deployer.tables` may import it.
"""
