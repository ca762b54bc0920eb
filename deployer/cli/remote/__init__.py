"""Jobs on clusters: starting, following and cancelling them.

`deployer.cli.commands` and `deployer.cli.main` may import it.
"""
