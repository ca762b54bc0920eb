"""Changes of a table's columns, counted on its rows first.

The rest of `deployer.tables`, `deployer.app` and `deployer.columns` may import it.
"""
