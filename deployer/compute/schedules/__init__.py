"""Schedules and alarms on AWS. Pure."""
