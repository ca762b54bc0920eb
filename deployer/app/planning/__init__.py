"""Plans of a project's stack: made, checked on data, judged by policies, kept in files.

The rest of `deployer.app` and `deployer.cli` may import it.
"""
