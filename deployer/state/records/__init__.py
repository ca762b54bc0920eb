"""Records of tables in their datasets' folders, from which a lost state store is rebuilt.

`deployer.state`, `deployer.state.open_s3`, `deployer.state.store`, `deployer.catalog`, `deployer.datasets` and
`deployer.tables` may import it.
"""
