"""The JSON forms of specs, for the inputs of resources and for the state, with a reader for each form.

`deployer.specs.editing`, `deployer.specs.loading` and every layer above `deployer.specs` may import it.
"""
