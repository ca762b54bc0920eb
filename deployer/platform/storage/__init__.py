"""Bytes in a folder or a bucket behind one interface, with checksums. It knows nothing of tables or states.

Every layer above `deployer.platform` may import it.
"""
