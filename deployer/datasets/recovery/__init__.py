"""What a dataset has and its table's log has not, and the updates that record it."""
