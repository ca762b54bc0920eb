"""The command `deployer agent`."""
