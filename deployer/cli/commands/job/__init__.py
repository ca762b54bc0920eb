"""The commands of `deployer job`, for jobs that write values of columns.

The rest of `deployer.cli` may import it.
"""
