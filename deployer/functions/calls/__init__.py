"""Calls of functions for batches of rows: in the thread, concurrently, or in a process where calls have a timeout.

`deployer.functions`, `deployer.columns`, `deployer.tables` and `deployer.views` may import it.
"""
