"""Verification of a log: it is folded from its beginning and compared with the stored states.

`deployer.state.reader`, `deployer.state.store`, `deployer.state.transfer` and `deployer.tables` may import it.
"""
