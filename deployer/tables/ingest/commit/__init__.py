"""Commits of appended fragments, alone or together with those of other writers."""
