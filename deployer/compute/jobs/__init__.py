"""The parts of jobs that all clusters share: the job to run, its code on S3, and the status that it reports.

The rest of `deployer.compute` and every layer above `deployer.compute` may import it.
"""
