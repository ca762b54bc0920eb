"""The files of a dataset: written, copied, and checked against what versions need.

Transactions, recovery and indexes of datasets may import it.
"""
