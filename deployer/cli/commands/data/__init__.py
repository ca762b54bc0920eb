"""Commands that load and read tables.

`deployer.cli.commands.rows` and the rest of `deployer.cli` may import it.
"""
