"""Search in a dataset: the instances of a component, and indexes of them.

The rest of `deployer.catalog.datasets`, the rest of `deployer.catalog` and `deployer.cli` may import it.
"""
