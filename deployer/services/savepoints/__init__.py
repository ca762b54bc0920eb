"""Savepoints and read leases."""
