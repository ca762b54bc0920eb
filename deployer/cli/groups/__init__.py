"""Groups of commands: `deployer stack`, `savepoint` and `restore`, and the groups that have their own packages.

`deployer.cli.main` may import it.
"""
