"""A stack's secrets: keys, encryption, and who keeps the key.

The rest of `deployer.engine` and `deployer.cli` may import it.
"""
