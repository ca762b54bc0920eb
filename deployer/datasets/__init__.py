"""Lance datasets: their versions, files, bounds, commit metadata and recovery. It knows tables by their state alone."""
