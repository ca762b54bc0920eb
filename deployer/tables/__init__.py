"""The API of tables: create, change, write, read, inspect and verify tables, and adopt existing datasets.

Every layer above it may import it.
"""
