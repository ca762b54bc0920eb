"""The order of rows in files: sort orders, ranges of keys and clustering.

`deployer.datasets.commit_metadata`, `deployer.datasets.files`, `deployer.datasets.recovery` and every layer above
`deployer.datasets` may import it.
"""
