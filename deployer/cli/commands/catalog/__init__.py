"""The commands of `deployer catalog`."""
