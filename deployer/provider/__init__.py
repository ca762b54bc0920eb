"""`pulumi-resource-lake`: the Pulumi provider for instances and tables, as a plug-in and in the process of the engine.

Every layer above it may import it.
"""
