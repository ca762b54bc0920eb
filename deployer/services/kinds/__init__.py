"""The kinds of services: what each one does, one package or module per kind.

The rest of `deployer.services`, `deployer.app`, `deployer.cli` and `deployer.table` may import it.
"""
