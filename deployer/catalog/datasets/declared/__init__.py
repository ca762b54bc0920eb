"""Datasets that specs declare: what is live of them, how a declaration is applied, and which recordings are new.

The rest of `deployer.catalog` and every layer above `deployer.catalog` may import it.
"""
