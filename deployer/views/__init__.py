"""Materialized views: tables whose rows are those of a query over other tables, and which a refresh keeps so.

Every layer above it may import it.
"""
