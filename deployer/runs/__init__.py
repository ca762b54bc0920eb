"""Runs of services and columns: records, leases, processes, jobs on clusters; and the rewriting of fragments.

`columns`, `services` and what is above them may import it.
"""
