"""Values between Arrow and Python: what functions get, and what they return, checked against the declared types.

`deployer.functions.binding` and `deployer.functions.calls` may import it.
"""
