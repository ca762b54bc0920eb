"""Writing, copying and checking the files of a dataset.

`deployer.datasets.indexes`, `deployer.datasets.lance_transactions` and every layer above `deployer.datasets` may import
it.
"""
