"""The stack's program: its process, and the services of Pulumi that answer its calls.

`deployer.engine.embedded` may import it.
"""
