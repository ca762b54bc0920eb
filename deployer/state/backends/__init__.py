"""Where logs are kept: the protocol that the store needs, and the queue in which writers of one machine wait."""
