"""The functions that commands and programs call; each returns its result as a value. `deployer.app` exports them.

`deployer.app` and `deployer.cli` may import it.
"""
