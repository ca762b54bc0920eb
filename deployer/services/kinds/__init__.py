"""The kinds of services, with one package or module for each kind.

The rest of `deployer.services`, `deployer.app`, `deployer.cli` and `deployer.table` may import it.
"""
