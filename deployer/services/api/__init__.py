"""Management of services: the client for programs, and the status of services.

`deployer.services` and every layer above `deployer.services` may import it.
"""
