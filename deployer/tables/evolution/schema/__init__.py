"""Changes of a table's columns, counted on its rows first."""
