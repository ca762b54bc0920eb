"""The commands of `deployer view`: materialized views and their refreshes."""
