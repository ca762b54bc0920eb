"""Schedules and alarms on AWS. Pure.

`deployer.compute.running` and every layer above `deployer.compute` may import it.
"""
