"""Specs as JSON and back: the inputs of resources and what the state remembers."""
