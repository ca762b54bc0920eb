"""Shell completion of names that are live: tables, columns, services and stacks, in a process that imports little.

Typer completes all else. `python -m deployer.cli.completion > deployer/cli/completion/grammar.json` writes what each
command takes.

`deployer.__main__` may import it.
"""
