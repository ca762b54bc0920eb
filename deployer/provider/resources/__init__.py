"""The kinds of resources that the provider has: instances and tables."""
