"""The catalog: the tables of an instance, served to the official client of rerun-sdk 0.28 (`rerun.catalog`).

`deployer catalog serve` runs the server, and `local` starts one for a program.

Every layer above it may import it.
"""

from deployer.catalog.child import local

__all__ = ["local"]
