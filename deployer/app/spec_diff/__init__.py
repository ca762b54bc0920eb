"""Specs of two Git refs compared, without live state.

`deployer.app.operations` may import it.
"""
