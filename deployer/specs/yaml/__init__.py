"""Spec files as nodes with positions. It knows nothing of what the nodes mean."""
