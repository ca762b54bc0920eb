"""Jobs on clusters that commands start, follow and cancel.

`deployer.cli.commands` and `deployer.cli.main` may import it.
"""
