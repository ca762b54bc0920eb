"""The report of a lake as an HTML page.

`deployer.app.operations` and `deployer.ui` may import it.
"""
