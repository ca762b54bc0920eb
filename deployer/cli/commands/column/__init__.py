"""The commands of `deployer column`: they write values of columns beside the existing rows.

The rest of `deployer.cli` may import it.
"""
