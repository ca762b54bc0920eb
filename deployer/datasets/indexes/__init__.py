"""The indexes of a dataset: what its versions have, and their names.

`deployer.datasets.recovery` and every layer above `deployer.datasets` may import it.
"""
