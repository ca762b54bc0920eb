"""Functions as packages: their code, what it needs, and where it is stored beside the tables."""
