"""Shell completion of live names: tables, columns, services and stacks, in a process that imports little.

Typer completes everything else. `python -m deployer.cli.completion > deployer/cli/completion/grammar.json` writes the
options and arguments of each command.

`deployer.__main__` may import it.
"""
