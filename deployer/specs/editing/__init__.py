"""Changes of spec files that keep every other line, and new spec files.

Every layer above `deployer.specs` may import it.
"""
