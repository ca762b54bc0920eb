"""Functions as packages: their code, its requirements, and its place beside the tables.

`deployer.functions.defined` and every layer above `deployer.functions` may import it.
"""
