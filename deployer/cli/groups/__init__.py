"""The commands `deployer stack …` and `deployer savepoint …`, and `deployer restore`."""
