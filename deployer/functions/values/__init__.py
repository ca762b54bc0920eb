"""Values between Arrow and Python: what functions get, and what they return, checked against the declared types."""
