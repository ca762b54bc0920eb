"""Changes of a Lance schema that write no data file."""
