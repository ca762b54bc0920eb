"""The interfaces of an engine and of a provider.

The rest of `deployer.engine` and `deployer.app` may import it.
"""
