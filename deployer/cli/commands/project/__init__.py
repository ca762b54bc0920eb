"""Commands on specs: init, validate, render, graph, schema, package.

`deployer.cli.commands.deploy` and the rest of `deployer.cli` may import it.
"""
