"""Tables that exist already, taken under management.

`deployer.app`, `deployer.app.operations` and `deployer.cli` may import it.
"""
