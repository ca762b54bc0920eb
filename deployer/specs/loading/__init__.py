"""Loads spec files into one `Lake`, or reports every problem. `load_lake` is the entry point.

`deployer.specs` and every layer above `deployer.specs` may import it.
"""
