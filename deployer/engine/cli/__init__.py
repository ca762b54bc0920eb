"""The official CLI as an engine.

`deployer.engine.choose` may import it.
"""
