"""Row keys that rows repeat."""
