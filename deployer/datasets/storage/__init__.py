"""The places of datasets, Lance's access to them, and the removal of their files.

The rest of `deployer.datasets` and every layer above `deployer.datasets` may import it.
"""
