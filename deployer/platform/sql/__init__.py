"""SQL from users and specs: it is checked to be one expression, and computed in a process with limits.

Every layer above `deployer.platform` may import it.
"""
