"""The command `deployer ui`.

The rest of `deployer.cli` may import it.
"""
