"""Writes values of columns for the fragments of a table, as a recorded run that can be resumed by its job id."""
