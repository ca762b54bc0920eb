"""Erases rows of the table `people` in a process that tests kill: ROOT CONDITION."""

from __future__ import annotations

import sys

from deployer.services.erasure.erase import erase
from deployer.tables.open_table import open_to_change

if __name__ == "__main__":
    erase(open_to_change(sys.argv[1], "people"), sys.argv[2], delete_savepoints=True)
