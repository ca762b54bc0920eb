"""A process that changes rows again and again beside others: `racing_worker.py ROOT NUMBER TIMES`.

Each time it adds 1 to a counter that all processes share, and merges a key that all of them insert or update.
"""

from __future__ import annotations

import sys

from deployer.table import connect

COUNTER = 1000


def main(root: str, number: int, times: int) -> None:
    with connect(root) as connection:
        table = connection.open_table("air.rows")
        for step in range(times):
            table.update(f"id = {COUNTER}", values_sql={"value": "value + 1"}, job_id=f"{number}-{step}")
            table.merge([{"id": step, "value": number}], job_id=f"merge-{number}-{step}")
            table.add([{"id": 2000 + number, "value": step}], job_id=f"add-{number}-{step}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
