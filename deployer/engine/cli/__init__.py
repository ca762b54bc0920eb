"""The official CLI as an engine."""
