"""Live state as the same models that the specs have, with the statistics that a plan needs.

Every layer above it may import it.
"""
