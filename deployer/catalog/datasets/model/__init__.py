"""The stored parts of a dataset: its record in the log, the rows of its tables, and the commits that change them.

The rest of `deployer.catalog.datasets`, the rest of `deployer.catalog` and every layer above `deployer.catalog` may
import it.
"""
