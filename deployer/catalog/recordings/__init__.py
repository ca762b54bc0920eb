"""Recordings: files of Rerun (RRD, `RRF2`), read where they are. An index has the byte range of each chunk; chunks are
served without being decoded.

`deployer.catalog.datasets` and `deployer.cli` may import it.
"""
