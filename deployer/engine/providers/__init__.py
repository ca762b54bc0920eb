"""Providers in this process and in processes of their own.

`deployer.engine.cli`, `deployer.engine.embedded`, `deployer.engine.steps`, `deployer.app` and `deployer.cli` may import
it.
"""
