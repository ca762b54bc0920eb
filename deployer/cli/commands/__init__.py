"""The commands, with a package for each group.

`deployer.cli.groups` and `deployer.cli.main` may import it.
"""
