"""The code and the packages of jobs as files to upload.

`deployer.compute.running` and every layer above `deployer.compute` may import it.
"""
