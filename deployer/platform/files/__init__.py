"""Files on disk: written privately and whole, read with limits.

`deployer.platform.storage` and every layer above `deployer.platform` may import it.
"""
