"""What a lake on AWS is expected to cost a month, by declarations, sizes, assumptions and a price file.

Every layer above it may import it.
"""
