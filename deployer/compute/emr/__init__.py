"""Clusters of EMR and EMR Serverless."""
