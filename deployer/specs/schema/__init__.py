"""The JSON Schema of specs, part by part.

The rest of `deployer.specs` and every layer above `deployer.specs` may import it.
"""
