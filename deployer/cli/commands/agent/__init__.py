"""The command `deployer agent`.

The rest of `deployer.cli` may import it.
"""
