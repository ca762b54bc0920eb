"""The changes that a dataset has and its table's log lacks, and the updates that record them.

`deployer.datasets.commit` and every layer above `deployer.datasets` may import it.
"""
