"""Groups of commands: `deployer stack`, `savepoint` and `restore`, and the groups that have a package each.

`deployer.cli.main` may import it.
"""
