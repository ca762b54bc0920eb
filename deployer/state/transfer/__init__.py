"""Export of a whole state store to one file, and import from the file.

`deployer.state.new_store`, `deployer.state.reader`, `deployer.state.store` and `deployer.cli` may import it.
"""
