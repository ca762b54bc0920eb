"""Changes of existing tables: of their schema, and all changes that need a new dataset.

`deployer.tables.admin`, `deployer.tables.maintenance` and every layer above `deployer.tables` may import it.
"""
