"""Drift of a lake: finding it, and writing it into the specs.

`deployer.app.operations` and `deployer.cli` may import it.
"""
