"""Conversion of values between Arrow and Python: the inputs of functions, and their results, which are checked against
the declared types.

`deployer.functions.binding` and `deployer.functions.calls` may import it.
"""
