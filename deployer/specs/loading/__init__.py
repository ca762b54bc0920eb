"""Loads spec files into one `Lake`, or reports every problem. The entry point is `load_lake`.

`deployer.specs` and every layer above `deployer.specs` may import it.
"""
