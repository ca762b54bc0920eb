"""Changes of columns by calls: adds computed columns, and alters and drops columns.

`deployer.cli` and `deployer.table` may import it.
"""
