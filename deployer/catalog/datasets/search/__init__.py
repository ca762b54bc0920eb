"""Search in a dataset: the instances of a component, and indexes of them.

`deployer.catalog.datasets.maintenance`, `deployer.catalog.datasets.registration`, `deployer.catalog.datasets.upkeep`,
the rest of `deployer.catalog` and `deployer.cli` may import it.
"""
