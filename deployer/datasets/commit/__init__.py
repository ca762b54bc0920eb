"""The protocol of commits to a table, and the search for jobs that committed.

Every layer above `deployer.datasets` may import it.
"""
