"""Saved plans: their file, and the seal that says they are the reviewed ones."""
