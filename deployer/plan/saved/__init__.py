"""Saved plans: their file, and the seal that proves that they were reviewed.

`deployer.plan.render`, `deployer.app` and `deployer.cli` may import it.
"""
