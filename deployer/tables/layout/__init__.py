"""Where the rows of a table are: its leaves and its indexes."""
