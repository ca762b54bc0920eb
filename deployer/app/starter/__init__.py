"""The files of a new project, which `deployer init` writes: package data under `files/`.

`deployer.app.stack` and `deployer.cli` may import it.
"""
