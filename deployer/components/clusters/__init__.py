"""Clusters of a lake on EMR Serverless and on EMR, with the arguments that a program adds to their specs.

The rest of `deployer.components` may import it.
"""
