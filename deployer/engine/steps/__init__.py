"""Steps of one run: what becomes of each resource, in which order."""
