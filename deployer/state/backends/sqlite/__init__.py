"""The backend of an instance on local disk: one SQLite file.

The rest of `deployer.state` may import it.
"""
