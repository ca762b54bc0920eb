"""Reads the documents of spec files, and resolves includes, variables and overlays.

`deployer.specs.editing`, `deployer.specs.loading`, `deployer.app`, `deployer.cli` and `deployer.compute` may import it.
"""
