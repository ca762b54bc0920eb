"""Reads of rows by key, range, condition and SQL."""
