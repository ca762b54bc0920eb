"""Foundations of the other packages: AWS, files, object storage, processes, SQL, the clock and text. It knows no
tables.

Every layer above it may import it.
"""
