"""Tables from data that exists already: columns and keys are inferred, datasets are adopted.

`deployer.app` and `deployer.cli` may import it.
"""
