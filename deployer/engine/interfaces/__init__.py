"""What an engine and a provider are asked and answer.

The rest of `deployer.engine` and `deployer.app` may import it.
"""
