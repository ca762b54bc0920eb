"""Drift of a lake: found, and taken over into the specs.

`deployer.app.operations` and `deployer.cli` may import it.
"""
