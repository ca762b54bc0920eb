"""What is read of a dataset: layers and chunks in memory, the tables that clients see, queries, and bytes of chunks."""
