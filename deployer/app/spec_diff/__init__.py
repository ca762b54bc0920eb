"""Specs of two Git refs compared, without live state."""
