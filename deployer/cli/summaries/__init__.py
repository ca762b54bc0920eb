"""Summaries of loads and runs, printed the same wherever they ran.

`deployer.cli.commands`, `deployer.cli.groups` and `deployer.cli.remote` may import it.
"""
