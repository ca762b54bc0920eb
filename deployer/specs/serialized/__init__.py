"""Specs as JSON and back: the inputs of resources and what the state remembers.

`deployer.specs.editing`, `deployer.specs.loading` and every layer above `deployer.specs` may import it.
"""
