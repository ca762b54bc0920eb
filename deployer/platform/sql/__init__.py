"""SQL that people and specs bring: checked to be one expression, and computed in a process with limits.

Every layer above `deployer.platform` may import it.
"""
