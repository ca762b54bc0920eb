"""Definitions of columns by calls: computed columns that are added, changed, dropped and shown."""
