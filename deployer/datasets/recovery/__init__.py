"""What a dataset has and its table's log lacks, and the updates that record it."""
