"""Commands that load and read tables."""
