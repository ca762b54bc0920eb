"""What each change does to data, and which changes are never applied. Pure.

The rest of `deployer.plan` and every layer above `deployer.plan` may import it.
"""
