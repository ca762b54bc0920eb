"""Property values, resources and URNs as the engine holds them.

The rest of `deployer.engine`, `deployer.app` and `deployer.cli` may import it.
"""
