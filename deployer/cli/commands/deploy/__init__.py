"""Commands that plan and apply: preview, up, destroy, drift, cost, doctor, plugin.

`deployer.cli.commands.rows`, `deployer.cli.commands.state` and the rest of `deployer.cli` may import it.
"""
