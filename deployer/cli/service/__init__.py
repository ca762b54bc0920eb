"""The commands `deployer service …`."""
