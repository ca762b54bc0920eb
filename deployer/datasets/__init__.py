"""Lance datasets: their versions, files, bounds, commits and recovery. No other package imports Lance.

It knows tables by their state alone.

Every layer above it may import it.
"""
