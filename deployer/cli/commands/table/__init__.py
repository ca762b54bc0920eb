"""The commands `deployer table …`.

The rest of `deployer.cli` may import it.
"""
