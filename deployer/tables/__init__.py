"""The API of tables: create, change, write, read, inspect and verify them, and adopt what exists.

Every layer above it may import it.
"""
