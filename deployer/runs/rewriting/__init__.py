"""The core that COMPACT and CLUSTER share: tasks, their executor, and the commit that replaces files.

Every layer above `deployer.runs` may import it.
"""
