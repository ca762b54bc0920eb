"""The order of rows in files: sort orders, ranges of keys and clustering. All of `deployer.datasets` may import it."""
