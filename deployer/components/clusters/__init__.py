"""Clusters of a lake: of EMR Serverless and of EMR, and what a program gives them beside their specs."""
