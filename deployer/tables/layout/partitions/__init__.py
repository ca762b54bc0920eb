"""The partition tree of a table: split points, sizes, and the split of leaves."""
