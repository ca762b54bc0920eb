"""Schedules and alarms on AWS. All functions are pure.

`deployer.compute.running` and every layer above `deployer.compute` may import it.
"""
