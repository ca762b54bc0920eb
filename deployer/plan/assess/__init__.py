"""The effect of each change on data, and the changes that are never applied. Pure.

The rest of `deployer.plan` and every layer above `deployer.plan` may import it.
"""
