"""The backend of an instance on local disk: one SQLite file."""
