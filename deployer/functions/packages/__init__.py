"""Functions as packages: their code, what it needs, and where it is stored beside the tables.

`deployer.functions.defined` and every layer above `deployer.functions` may import it.
"""
