"""Infrastructure as code for lakehouse tables."""

__version__ = "0.1.0"
