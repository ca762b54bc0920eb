"""The files of a table, and what the state knows of each."""
