"""Runs of services and columns: records, leases, processes, jobs on clusters; and the rewriting of fragments.

Every layer above it may import it.
"""
