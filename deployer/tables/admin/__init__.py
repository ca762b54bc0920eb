"""Creation, change and deletion of tables and instances.

`deployer.tables.maintenance` and every layer above `deployer.tables` may import it.
"""
