"""The process of one queued run on this machine: `python -m deployer.services.worker ROOT TABLE RUN`.

It reports through the run's record; errors from before the start of the run go to stderr. It has a low priority, so
that readers of the table are served first.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import closing, suppress

from deployer.compute.clusters import local_cluster
from deployer.compute.spark.local import LocalCluster
from deployer.errors import DeployerError, Interrupted
from deployer.live.reader import live_instance
from deployer.platform.text import masking
from deployer.platform.text.masked_streams import masked_streams
from deployer.runs.records import find_run
from deployer.runs.runner import RunRequest
from deployer.services.registry import run_service
from deployer.state import open_store
from deployer.tables.open_table import find_entry

NICENESS = 10


def main(argv: Sequence[str]) -> int:
    """Runs the queued run and returns the exit code."""
    with masking.scope(), masked_streams():
        return _main(*argv)


def _main(root: str, table: str, run_id: str) -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the run is CANCELLED; its commits stay
    try:
        with closing(open_store(root)) as store:
            instance = live_instance(store.instance())
            run = find_run(store.table(find_entry(store.instance().tables.values(), table).table_id), run_id)
        clusters = instance.clusters if instance else ()

        def sizes() -> LocalCluster:
            return local_cluster(clusters, run.cluster, instance.address if instance else table)

        run_service(root, table, run.service, cluster=sizes, asked=RunRequest(run_id=run_id))
    except DeployerError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    except KeyboardInterrupt:
        return Interrupted.exit_code
    return 0


def give_way() -> None:
    os.nice(NICENESS)
    if sys.platform == "linux":
        with suppress(OSError):  # a container that does not allow it
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))  # its wake-ups do not preempt other processes


if __name__ == "__main__":
    give_way()
    sys.exit(main(sys.argv[1:]))
