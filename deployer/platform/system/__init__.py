"""The machine that runs deployer: clock, user, processes, signals and failpoints.

`deployer.platform.aws`, `deployer.platform.storage` and every layer above `deployer.platform` may import it.
"""
