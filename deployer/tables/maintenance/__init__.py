"""Checks what tables consist of, rebuilds it, and removes what nothing refers to."""
