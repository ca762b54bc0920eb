"""The common parts of AWS: sessions, error codes, names, ARNs and calls with retries.

`deployer.platform.storage` and every layer above `deployer.platform` may import it.
"""
