"""The report of a lake as one page.

`deployer.app.operations` and `deployer.ui` may import it.
"""
