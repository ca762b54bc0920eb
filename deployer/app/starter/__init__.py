"""The files of a new project, which `deployer init` writes: package data under `files/`."""
