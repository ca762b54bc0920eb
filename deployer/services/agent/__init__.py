"""`deployer agent`: watches the triggers of an instance's services and runs what is due, for as long as it is let.

`deployer.services.api`, `deployer.cli` and `deployer.ui` may import it.
"""
