"""The commands `deployer rows …`.

`deployer.cli.commands.catalog` and the rest of `deployer.cli` may import it.
"""
