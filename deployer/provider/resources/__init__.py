"""The kinds of resources that the provider has: instances and tables.

The rest of `deployer.provider`, `deployer.app` and `deployer.cli` may import it.
"""
