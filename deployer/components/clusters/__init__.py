"""Clusters of a lake: of EMR Serverless and of EMR, and what a program gives them beside their specs.

The rest of `deployer.components` may import it.
"""
