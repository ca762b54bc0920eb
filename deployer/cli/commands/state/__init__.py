"""The commands `deployer state …`.

The rest of `deployer.cli` may import it.
"""
