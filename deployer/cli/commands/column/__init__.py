"""The commands of `deployer column`: values of columns beside the rows that are there."""
