"""Foundations of the other packages: AWS, files, object storage, processes, SQL, the clock and text. It does not depend
on tables.

Every layer above it may import it.
"""
