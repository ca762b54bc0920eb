"""Files to load: found, their format known, and cut into splits."""
