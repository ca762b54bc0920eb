"""The commands of `deployer view`: materialized views and their refreshes.

The rest of `deployer.cli` may import it.
"""
