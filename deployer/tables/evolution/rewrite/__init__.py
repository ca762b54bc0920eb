"""Rewrites of a table in other keys, split points or another file format."""
