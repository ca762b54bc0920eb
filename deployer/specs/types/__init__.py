"""Column types: their texts, names and Arrow forms, and what Lance can store."""
