"""Where datasets lie, how Lance reaches them, and the removal of their files."""
