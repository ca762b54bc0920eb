"""The commands `deployer table …`."""
