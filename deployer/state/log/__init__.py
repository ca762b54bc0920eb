"""Entries of a log: the updates and requirements that they hold, their bytes, and the fold into states. Pure.

The rest of `deployer.state` and every layer above `deployer.state` may import it.
"""
