"""Runs of services: their records, leases, processes and jobs on clusters."""
