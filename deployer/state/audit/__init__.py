"""Verification of a log: it is folded from its beginning and compared with what is stored."""
