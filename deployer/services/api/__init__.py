"""What people and programs do to services: the client, and what is shown of services.

`deployer.services` and every layer above `deployer.services` may import it.
"""
