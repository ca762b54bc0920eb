"""What a lake on AWS is expected to cost a month, by declarations, sizes, assumptions and a price file.

`deployer.app`, `deployer.cli` and `deployer.components` may import it.
"""
