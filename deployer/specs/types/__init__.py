"""Column types: their texts, names and Arrow forms, and the types that Lance can store.

The rest of `deployer.specs` and every layer above `deployer.specs` may import it.
"""
