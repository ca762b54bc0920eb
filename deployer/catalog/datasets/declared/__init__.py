"""Datasets that specs declare: their live state, the application of a declaration, and their new recordings.

The rest of `deployer.catalog` and every layer above `deployer.catalog` may import it.
"""
