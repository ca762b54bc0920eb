"""Runs that write values of columns for the fragments of a table. A run is recorded and can be resumed by its job id.

The rest of `deployer.columns`, `deployer.cli`, `deployer.services` and `deployer.table` may import it.
"""
