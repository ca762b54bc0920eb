"""Recordings: files of Rerun (RRD, `RRF2`), read in place. Chunks are indexed by their bytes, and never decoded to be
served.

`deployer.catalog.datasets` and `deployer.cli` may import it.
"""
