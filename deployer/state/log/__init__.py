"""Entries of a log: the updates and requirements that they hold, their bytes, and the fold into states. Pure."""
