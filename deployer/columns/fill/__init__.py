"""Writes values of columns for the fragments of a table, as a recorded run that can be resumed by its job id.

The rest of `deployer.columns`, `deployer.cli`, `deployer.services` and `deployer.table` may import it.
"""
