"""The terminal: stdout and stderr, progress displays and the view of an engine's steps.

The rest of `deployer.cli` and `deployer.__main__` may import it.
"""
