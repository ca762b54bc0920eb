"""Facts about a table without reading rows: versions, sizes, and what protects it."""
