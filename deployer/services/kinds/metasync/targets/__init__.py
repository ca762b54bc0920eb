"""Catalogs that METASYNC publishes to, behind one interface."""
