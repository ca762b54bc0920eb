"""Documents of spec files: includes, variables and overlays are resolved here.

`deployer.specs.editing`, `deployer.specs.loading`, `deployer.app`, `deployer.cli` and `deployer.compute` may import it.
"""
