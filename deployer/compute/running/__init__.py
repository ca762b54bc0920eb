"""Jobs on a declared cluster: how they are started, followed, cancelled and resumed.

`deployer.compute.old_job_code` and every layer above `deployer.compute` may import it.
"""
