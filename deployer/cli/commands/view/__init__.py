"""The commands of `deployer view`, for materialized views and their refreshes.

The rest of `deployer.cli` may import it.
"""
