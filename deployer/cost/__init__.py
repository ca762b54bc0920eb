"""The expected monthly cost of a lake on AWS, by declarations, sizes, assumptions and a price file.

Every layer above it may import it.
"""
