"""Rewrites of a table in other keys, split points or another file format.

The rest of `deployer.tables` and every layer above `deployer.tables` may import it.
"""
