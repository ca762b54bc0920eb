"""A plan of some resources only: the targets of `--target`, and the other resources that must change with them.

The rest of `deployer.plan`, `deployer.app`, `deployer.cli` and `deployer.policy` may import it.
"""
