"""Removal of data that no version, savepoint or reader needs.

Every layer above `deployer.tables` may import it.
"""
