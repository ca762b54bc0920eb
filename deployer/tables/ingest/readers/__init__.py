"""Splits of files to checked rows, the same in this process and in Spark's tasks."""
