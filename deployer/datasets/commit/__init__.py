"""The protocol of commits to a table, and the search for jobs that committed."""
