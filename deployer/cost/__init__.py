"""The expected monthly cost of a lake on AWS, from declarations, sizes, assumptions and a price file.

Every layer above it may import it.
"""
