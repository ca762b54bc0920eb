"""Values in specs: keys, times, schedules, roots and catalogs.

The rest of `deployer.specs` and every layer above `deployer.specs` may import it.
"""
