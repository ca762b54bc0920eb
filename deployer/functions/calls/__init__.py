"""Calls of functions for batches of rows: in the thread, concurrently, or in a process where calls have a timeout."""
