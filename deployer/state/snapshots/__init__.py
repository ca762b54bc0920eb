"""Snapshots of states as Parquet files, their schedule, and the removal of log entries that they replace.

The rest of `deployer.state`, `deployer.cli` and `deployer.services` may import it.
"""
