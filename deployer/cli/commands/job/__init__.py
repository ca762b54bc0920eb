"""The commands of `deployer job`: jobs that write values of columns."""
