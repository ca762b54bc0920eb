"""A whole state store as one file, and back."""
