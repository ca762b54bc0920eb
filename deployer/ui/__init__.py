"""The lake in a browser: pages of its tables, health, plan, drift, cost and rows, served on loopback.

`deployer ui` runs the server. Nothing changes the lake unless runs are allowed.

`deployer.cli` may import it.
"""
