"""Pulumi.yaml, stack configuration and the address of the state.

The rest of `deployer.engine` and `deployer.app` may import it.
"""
