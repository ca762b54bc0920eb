"""A stack's secrets: keys, encryption, and who keeps the key."""
