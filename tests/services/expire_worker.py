"""Runs EXPIRE on the table `flights` in a process that tests kill: ROOT SECONDS."""

from __future__ import annotations

import sys

from deployer.services.kinds.expire import expire_table

if __name__ == "__main__":
    expire_table(sys.argv[1], "flights", now=float(sys.argv[2]))
