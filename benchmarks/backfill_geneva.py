"""Measures a backfill by geneva, in a Python that has it: `PYTHON backfill_geneva.py FOLDER ROWS FILES`.

Prints the seconds of the second backfill of all rows by a scalar function; Ray and its workers already run then.
"""

from __future__ import annotations

import sys
import time
from itertools import pairwise


def main() -> None:
    """Makes the table of `benchmarks.backfill`, and computes its column twice."""
    import geneva  # type: ignore[import-not-found]
    import numpy as np
    import pyarrow as pa

    folder, rows, files = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

    @geneva.udf(data_type=pa.float64())  # type: ignore[untyped-decorator]
    def scalar(value: int) -> float:
        return value * 2.0 + 1.0

    database = geneva.connect(folder)
    table = None
    for start, stop in pairwise(np.linspace(0, rows, files + 1).astype(int)):
        part = pa.table({"value": pa.array(np.arange(start, stop, dtype=np.int64))})
        table = database.create_table("rows", part) if table is None else table
        if start:
            table.add(part)
    assert table is not None
    table.add_columns({"made": scalar})
    with database.local_ray_context():
        table.backfill("made")
        begun = time.perf_counter()
        table.backfill("made", where="1=1")
        seconds = time.perf_counter() - begun
    print(seconds)


if __name__ == "__main__":
    main()
