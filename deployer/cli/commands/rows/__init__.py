"""The commands `deployer rows …`.

The rest of `deployer.cli` may import it.
"""
