"""Live state in the models of specs, with the statistics that a plan needs.

Every layer above it may import it.
"""
