"""Checks what tables consist of, rebuilds it, and removes what nothing refers to.

Every layer above `deployer.tables` may import it.
"""
