"""The terminal: stdout and stderr, progress displays and the view of an engine's steps."""
