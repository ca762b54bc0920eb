"""Writes of DataFrames and streams: a plan made on the driver, tasks that write files, and one commit on the driver.

Tasks check, sort and write their rows, each leaf apart, and note every file that is there (`file_notes`). Only files
that messages of successful tasks name are committed; all others that were noted are removed.

`deployer.spark.source` may import it.
"""
