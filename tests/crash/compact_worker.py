"""A process that compacts a table in portions, each of which passes every point of a commit.

`compact_worker.py ROOT`: options are such that each leaf, or each pair of files, is a portion.
"""

from __future__ import annotations

import sys

from deployer.services.compact import compact_table

if __name__ == "__main__":
    print(compact_table(sys.argv[1], "flights", {"target_rows": 100, "portion_bytes": 1}).work.portions)
