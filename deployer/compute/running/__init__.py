"""Jobs on a declared cluster: started, followed, cancelled and resumed.

`deployer.compute.old_job_code` and every layer above `deployer.compute` may import it.
"""
