"""What each change does to data, and which changes are never applied. Pure."""
