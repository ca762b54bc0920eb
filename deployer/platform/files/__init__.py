"""Files on disk: private and atomic writes, and reads with limits.

`deployer.platform.storage` and every layer above `deployer.platform` may import it.
"""
