"""Catalogs that METASYNC publishes to, behind one interface.

`deployer.services.kinds.metasync`, `deployer.services.kinds.metasync.registry` and
`deployer.services.kinds.metasync.sync` may import it.
"""
