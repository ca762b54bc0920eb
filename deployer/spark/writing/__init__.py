"""Writes of DataFrames and streams: the driver makes a plan, tasks write files, and the driver commits once.

Tasks check, sort and write the rows of each leaf separately, and note every written file (`file_notes`). Only files in
the messages of successful tasks are committed; all other noted files are removed.

`deployer.spark.source` may import it.
"""
