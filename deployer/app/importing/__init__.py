"""The import of existing tables: the stack manages them afterwards.

`deployer.app`, `deployer.app.operations` and `deployer.cli` may import it.
"""
