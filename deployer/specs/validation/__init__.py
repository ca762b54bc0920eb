"""Documents checked against the schema; each error says what is wrong, where, and what is meant.

The rest of `deployer.specs` and every layer above `deployer.specs` may import it.
"""
