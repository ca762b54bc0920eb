"""The commands `deployer state …`."""
