"""Materialized views: tables with the rows of a query over other tables, which refreshes update.

Every layer above it may import it.
"""
