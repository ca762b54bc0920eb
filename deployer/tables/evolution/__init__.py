"""Changes of tables that exist: of their schema, and of all that a new dataset is needed for."""
