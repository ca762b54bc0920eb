"""The catalog server: the calls of Rerun's service, and the port that clients connect to.

`deployer.cli` may import it.
"""
