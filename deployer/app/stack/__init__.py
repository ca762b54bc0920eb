"""A stack of a project: its engine, its state, and whose lake it is.

The rest of `deployer.app` and `deployer.cli` may import it.
"""
