"""Values of columns, written to new files beside existing rows: read from files (`load`) or computed (`backfill`).

`fill` has the parts that both share: runs that claim fragments, checkpoints, and commits.

Every layer above it may import it.
"""
