"""Checks of a machine, a project, a lake and its AWS account.

`deployer.app.operations` and `deployer.cli` may import it.
"""
