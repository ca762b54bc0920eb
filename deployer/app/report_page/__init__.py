"""The report of a lake as one page."""
