"""A stack's secrets: keys, encryption, and the keepers of keys.

The rest of `deployer.engine` and `deployer.cli` may import it.
"""
