"""Changes of spec files that keep every other line, and new spec files."""
