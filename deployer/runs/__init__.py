"""Runs of services and columns: records, leases, processes and jobs on clusters; also the rewriting of fragments.

Every layer above it may import it.
"""
