"""The storage of logs: the protocol that the store needs, and the queue in which writers of one machine wait.

The rest of `deployer.state` and every layer above `deployer.state` may import it.
"""
