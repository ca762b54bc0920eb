"""States as Parquet files, when they are written, and what of a log they make unnecessary."""
