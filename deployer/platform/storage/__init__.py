"""Bytes in a folder or a bucket behind one interface, with checksums. It does not depend on tables or states.

Every layer above `deployer.platform` may import it.
"""
