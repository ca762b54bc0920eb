"""A stack's state: backends, checkpoints, journals and locks."""
