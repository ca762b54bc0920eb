"""The difference between what is declared and what is live. Pure.

`deployer.plan`, `deployer.plan.planning` and every layer above `deployer.plan` may import it.
"""
