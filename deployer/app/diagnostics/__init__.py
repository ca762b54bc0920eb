"""Checks of a machine, a project, a lake and its AWS account."""
