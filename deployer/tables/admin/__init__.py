"""Creation, change and deletion of tables and instances."""
