"""The commands `deployer rows …`."""
