"""Checks documents against the schema. Each error states what is wrong, where, and what the author likely meant.

The rest of `deployer.specs` and every layer above `deployer.specs` may import it.
"""
