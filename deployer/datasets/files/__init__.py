"""The files of a dataset: written, copied, and checked against what versions need.

`deployer.datasets.indexes`, `deployer.datasets.lance_transactions` and every layer above `deployer.datasets` may import
it.
"""
