"""Datasets that specs declare: what is live of them, how a declaration is applied, and which recordings are new.

The rest of `deployer.catalog`, `deployer.app`, `deployer.cli` and `deployer.provider` may import it.
"""
