"""Verification of tables against their datasets, and the rebuild of a lost state store."""
