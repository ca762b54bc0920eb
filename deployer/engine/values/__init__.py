"""Property values, resources and URNs in the engine's form.

The rest of `deployer.engine`, `deployer.app` and `deployer.cli` may import it.
"""
