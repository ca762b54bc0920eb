"""The result of `udf` for a function or class: its signature, its types and its settings.

`deployer.functions` and `deployer.functions.defined` may import it.
"""
