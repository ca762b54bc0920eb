"""External tables: entries whose Lance datasets lie outside of the instance's root. Their data is never deleted.

`deployer.catalog.datasets`, `deployer.catalog.entries`, `deployer.catalog.instance_tables` and `deployer.provider` may
import it.
"""
