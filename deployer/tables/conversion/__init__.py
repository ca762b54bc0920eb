"""Conversion of Arrow arrays without loss, and of texts and JSON to the types of columns."""
