"""Search in a dataset: the instances of a component, and the indexes on these instances.

The rest of `deployer.catalog.datasets`, the rest of `deployer.catalog` and `deployer.cli` may import it.
"""
