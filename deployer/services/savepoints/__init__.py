"""Savepoints and read leases.

`deployer.services.erasure`, `deployer.services.registry`, `deployer.services.restore`, `deployer.catalog`,
`deployer.cli` and `deployer.spark` may import it.
"""
