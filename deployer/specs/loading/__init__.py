"""From spec files to one `Lake`, or every problem that they have. `load_lake` is the way in.

`deployer.specs` and every layer above `deployer.specs` may import it.
"""
