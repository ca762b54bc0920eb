"""Datasets of recordings: their entries, layers, chunks, tasks and queries.

An entry is a property of the instance in the state store's log. It names the versions of the dataset's Lance tables,
which have one row for each layer, chunk and task. Recordings stay where they are.

`deployer.catalog.entries`, `deployer.catalog.serving` and every layer above `deployer.catalog` may import it.
"""
