"""States as Parquet files, when they are written, and what of a log they make unnecessary.

The rest of `deployer.state`, `deployer.cli` and `deployer.services` may import it.
"""
