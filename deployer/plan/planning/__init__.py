"""From a difference to a plan: risks, causes, refusals and places of rewrites. Pure.

`deployer.plan`, `deployer.app` and `deployer.runs` may import it.
"""
