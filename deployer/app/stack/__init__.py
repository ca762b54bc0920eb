"""A stack of a project: its engine, its state, and the owner of its lake.

The rest of `deployer.app` and `deployer.cli` may import it.
"""
