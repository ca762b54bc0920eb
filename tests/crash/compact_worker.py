"""A process that compacts or clusters a table in portions, each of which passes every point of a commit.

`compact_worker.py ROOT [cluster]`: options are such that each leaf, or each pair of files, is a portion.
"""

from __future__ import annotations

import sys

from deployer.services.kinds.cluster import cluster_table
from deployer.services.kinds.compact import compact_table

if __name__ == "__main__":
    if sys.argv[2:] == ["cluster"]:
        options = {"columns": ["delay", "at"], "curve": "hilbert", "portion_bytes": 1}
        print(cluster_table(sys.argv[1], "flights", {**options, "target_file_bytes": 2_500}).work.portions)
    else:
        print(compact_table(sys.argv[1], "flights", {"target_rows": 100, "portion_bytes": 1}).work.portions)
