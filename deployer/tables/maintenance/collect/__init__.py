"""Removal of what no version, savepoint or reader needs."""
