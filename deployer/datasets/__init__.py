"""Lance datasets: their versions, files, bounds, commits and recovery. No other package imports Lance.

It reads tables only through their state.

Every layer above it may import it.
"""
