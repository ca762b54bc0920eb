"""Saved plans: their file, and the seal that says they are the reviewed ones.

`deployer.plan.render`, `deployer.app` and `deployer.cli` may import it.
"""
