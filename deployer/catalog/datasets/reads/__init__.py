"""Reads of a dataset: its layers and chunks in memory, the tables that clients see, queries, and the bytes of chunks.

`deployer.catalog.datasets.declared`, `deployer.catalog.datasets.registration`, `deployer.catalog.datasets.search`, the
rest of `deployer.catalog`, `deployer.app`, `deployer.cli` and `deployer.ui` may import it.
"""
