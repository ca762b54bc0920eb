"""Turns a difference into a plan: risks, causes, refusals and places of rewrites. Pure.

`deployer.plan`, `deployer.app` and `deployer.runs` may import it.
"""
