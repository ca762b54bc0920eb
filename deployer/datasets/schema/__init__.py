"""Changes of a Lance schema that write no data file.

`deployer.datasets.files`, `deployer.columns` and `deployer.tables` may import it.
"""
