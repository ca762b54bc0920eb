"""Values of columns: written beside the rows that are there, from files (`load`) or by any function of a fragment.

`fill` is what all of these share: runs that claim fragments, checkpoints, and the commits.

Every layer above it may import it.
"""
