"""What each kind of transaction requires, and so which of two concurrent ones is refused.

`deployer.state.store` and every layer above `deployer.state` may import it.
"""
