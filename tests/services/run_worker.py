"""A process of its own that works on runs: `run_worker.py ROOT race RUN` or `run_worker.py ROOT hold RUN`.

`race` tries to start each of RUN-0, RUN-1 … that is queued, ends what it got, and prints its number. `hold` starts RUN
with a short lease, prints so, and keeps it until it is killed.
"""

from __future__ import annotations

import sys
import time
from contextlib import suppress

from deployer.errors import Conflict, NotFound
from deployer.runs.records import queue_run, start_run
from deployer.state import open_store
from tests.state.samples import TABLE


def main(root: str, what: str, run: str) -> None:
    store = open_store(root)
    if what == "hold":
        held = start_run(store, TABLE, run, lease=0.5)
        with held.kept():
            print("held", flush=True)
            time.sleep(600)
    for number in range(10):
        own_id = f"{run}-{number}"
        with suppress(Conflict):  # somebody else's is still open
            queue_run(store, TABLE, "CLEAN", cause="race", run_id=own_id, needs_service=False)
        try:
            start_run(store, TABLE, own_id).finish(reason=str(number))
        except (Conflict, NotFound):
            continue
        print(number, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
