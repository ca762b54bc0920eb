"""Table services: their runs, and the savepoints of tables. The client and the runners stand on it."""
