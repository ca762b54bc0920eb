"""The commands of `deployer job`: jobs that write values of columns.

The rest of `deployer.cli` may import it.
"""
