"""Summaries of loads and runs, which are printed in the same way wherever they ran.

`deployer.cli.commands`, `deployer.cli.groups` and `deployer.cli.remote` may import it.
"""
