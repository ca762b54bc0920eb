"""Entries of a log: their updates and requirements, their stored bytes, and the fold of entries into states.

The functions are pure, except that `cache` reads logs and keeps states.

The rest of `deployer.state` and every layer above `deployer.state` may import it.
"""
