"""The storage of logs: the protocol that each backend implements, and the queue in which writers of one machine wait.

The rest of `deployer.state` and every layer above `deployer.state` may import it.
"""
