"""The commands of `deployer catalog`.

The rest of `deployer.cli` may import it.
"""
