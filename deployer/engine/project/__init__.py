"""Pulumi.yaml, stack configuration and the address of the state."""
