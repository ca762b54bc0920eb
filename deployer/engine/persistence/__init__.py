"""A stack's state: backends, checkpoints, journals and locks.

The rest of `deployer.engine`, `deployer.app` and `deployer.cli` may import it.
"""
