"""A stack of a project: its engine, its state, and whose lake it is."""
