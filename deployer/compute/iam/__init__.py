"""IAM policies for jobs, people and pipelines. All functions are pure.

`deployer.compute.emr`, `deployer.compute.schedules` and every layer above `deployer.compute` may import it.
"""
