"""A plan of some resources only: what `--target` names, and what else must change with it.

The rest of `deployer.plan`, `deployer.app`, `deployer.cli` and `deployer.policy` may import it.
"""
