"""The comparison of the specs at two Git refs, without live state.

`deployer.app.operations` may import it.
"""
