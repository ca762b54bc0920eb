"""`deployer agent`: watches the triggers of an instance's services and runs what is due, until it is stopped.

`deployer.services.api`, `deployer.cli` and `deployer.ui` may import it.
"""
