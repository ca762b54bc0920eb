"""Spark in this process: Java, sessions, progress and failures."""
