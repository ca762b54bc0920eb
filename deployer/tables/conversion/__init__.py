"""Conversion of Arrow arrays without loss, and of texts and JSON to the types of columns.

The rest of `deployer.tables`, `deployer.columns`, `deployer.services` and `deployer.spark` may import it.
"""
