"""Plans of a project's stack: making them, checking them on data, judging them by policies, and saving them in files.

The rest of `deployer.app` and `deployer.cli` may import it.
"""
