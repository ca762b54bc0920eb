"""One batch of a stream in a process that tests kill: ROOT MODE BATCH START ROWS. Two tasks write it."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.spark.writes import Stream, batch_rows
from tests.tables.lakes import Lake


def main(root: str, mode: str, batch: str, start: str, rows: str) -> int:
    lake = Lake.__new__(Lake)
    lake.folder, lake.root = Path(root).parent, root
    Stream(lake, upsert=str(mode == "upsert").lower()).run(int(batch), *batch_rows(int(start), int(rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
