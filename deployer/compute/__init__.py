"""The places where Spark runs: in this process or on clusters on AWS, with their IAM policies, schedules and job
packages.

Every layer above it may import it.
"""
