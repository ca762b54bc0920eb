"""The commands, one package per group of them.

`deployer.cli.groups` and `deployer.cli.main` may import it.
"""
