"""A whole state store as one file, and back.

`deployer.state.new_store`, `deployer.state.reader`, `deployer.state.store` and `deployer.cli` may import it.
"""
