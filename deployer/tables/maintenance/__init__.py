"""Verification of tables, the rebuild of a lost state store, and the removal of unneeded data.

Every layer above `deployer.tables` may import it.
"""
