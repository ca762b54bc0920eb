"""What `udf` makes of a function or class: its signature, its types and its settings."""
