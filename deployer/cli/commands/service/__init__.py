"""The commands `deployer service …`.

The rest of `deployer.cli` may import it.
"""
