"""IAM policies of jobs, people and pipelines. Pure.

`deployer.compute.emr`, `deployer.compute.schedules` and every layer above `deployer.compute` may import it.
"""
