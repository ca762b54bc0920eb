"""Inputs that several commands share: options of text files, standard input, and the table that a command uses.

`deployer.cli.commands` and `deployer.cli.groups` may import it.
"""
