"""The report of a lake as one page.

`deployer.app.operations` may import it.
"""
