"""The requirements of each kind of transaction, which decide which of two concurrent transactions is refused.

`deployer.state.store` and every layer above `deployer.state` may import it.
"""
