"""A process that cleans a table as somebody would eight days from now: `clean_worker.py ROOT`."""

from __future__ import annotations

import sys
import time

from deployer.services.kinds.clean import clean_table

if __name__ == "__main__":
    print(clean_table(sys.argv[1], "flights", {}, now=time.time() + 8 * 86_400).removed.versions)
