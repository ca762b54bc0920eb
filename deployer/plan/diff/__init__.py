"""The difference between declared and live resources. Pure.

`deployer.plan`, `deployer.plan.planning` and every layer above `deployer.plan` may import it.
"""
