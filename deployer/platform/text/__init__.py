"""Text that people read and write: numbers, sizes and durations, escapes of untrusted text, masks of secrets.

`deployer.platform.isolation`, `deployer.platform.storage` and every layer above `deployer.platform` may import it.
"""
