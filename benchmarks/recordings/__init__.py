"""Datasets of recordings in the benchmark of the catalog. `client` and `written` run in the environment of Rerun's
client."""
