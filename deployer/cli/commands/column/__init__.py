"""The commands of `deployer column`: values of columns beside the rows that are there.

The rest of `deployer.cli` may import it.
"""
