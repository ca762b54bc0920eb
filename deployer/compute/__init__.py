"""The places where Spark runs (this process, or clusters on AWS), and their IAM policies, schedules and job packages.

Every layer above it may import it.
"""
