"""The stack's program: its process, and the services of Pulumi that answer it.

`deployer.engine.embedded` may import it.
"""
