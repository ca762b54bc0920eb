"""Drift of a lake: found, and taken over into the specs."""
