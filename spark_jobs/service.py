"""The job that runs a service of a table, for its schedule or for a person.

As a Spark application: `spark-submit spark_jobs/service.py --root ROOT --table DATABASE.NAME --service KIND [options]`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from functools import partial
from typing import Any

from deployer.compute.spark.local import LocalCluster
from deployer.errors import Conflict, NotFound
from deployer.platform.system.progress import OnProgress, no_progress
from deployer.runs.records import fail_dead_runs, queue_run
from deployer.runs.runner import RunRequest, ending_unbegun
from deployer.services.api.attachments import find_service
from deployer.services.registry import run_service
from deployer.services.triggers.after_load import run_due_services
from deployer.services.triggers.due import SCHEDULE, scheduled_run_id
from deployer.specs.schema.services import KINDS
from deployer.state import open_store
from deployer.state.model.services import Run, ServiceKind
from deployer.state.store import StateStore
from deployer.tables.open_table import find_entry
from spark_jobs.program import run_program

ON_DEMAND = "on demand"  #: the cause of a run


def run_scheduled(
    root: str,
    table: str,
    kind: ServiceKind,
    *,
    cluster: str | None = None,
    scheduled: str | None = None,
    sizes: Callable[[], LocalCluster] = LocalCluster,
    on_progress: OnProgress = no_progress,
) -> Mapping[str, Any]:
    """Runs a service of `table` (`database.name`) of the instance at `root`; returns the run's id, its status and why.

    `scheduled` is the time of the schedule that starts the run: it is run once for each time, even if started
    repeatedly. Nothing runs, and the id is None, while the service is paused or already running; a schedule also runs
    nothing while the table is offline. `cluster` is the name to record, `sizes` are those of a local session. Raises
    NotFound for a table or service that does not exist, Refused for a service that this release does not run, whose run
    is then FAILED.
    """
    with closing(open_store(root)) as store:
        table_id = find_entry(store.instance().tables.values(), table).table_id
        run = _queued(store, table_id, kind, cluster, scheduled)
        if isinstance(run, str):
            return {"run_id": None, "status": None, "why": run}
        with ending_unbegun(store, table_id, run.run_id):
            done = run_service(root, table, kind, cluster=sizes, on_progress=on_progress, asked=RunRequest(run.run_id))
    due = _due_after(root, table, kind, done.status, sizes, on_progress)
    return {"run_id": run.run_id, "status": done.status, "why": done.why, **due}


def _due_after(
    root: str, table: str, kind: str, status: str, sizes: Callable[[], LocalCluster], on_progress: OnProgress
) -> Mapping[str, Any]:
    """Runs the services that are due after a load, as every load does: without an agent, nothing else checks their
    conditions."""
    if kind != "INGEST" or status != "SUCCEEDED":
        return {}
    return {"services": [each.as_json() for each in run_due_services(root, table, sizes, on_progress)]}


def _queued(
    store: StateStore, table_id: str, kind: ServiceKind, cluster: str | None, scheduled: str | None
) -> Run | str:
    """Returns the queued run, or why there is none."""
    fail_dead_runs(store, table_id)
    state = store.table(table_id)
    service = find_service(state, kind, f"table {table_id}")
    if service.paused:
        return "the service is paused"
    if scheduled and not state.properties.online:
        return "the table is offline"
    try:
        run = queue_run(
            store,
            table_id,
            kind,
            cause=SCHEDULE if scheduled else ON_DEMAND,
            cluster=cluster or service.cluster,
            run_id=scheduled_run_id(kind, scheduled) if scheduled else None,
        )
    except Conflict as conflict:
        return conflict.what
    except NotFound:  # requested again after its own run was dropped from the kept ones
        return f"the run of {scheduled} is over"
    return run if run.status == "QUEUED" else f"run {run.run_id} of this time is {run.status}"


@contextmanager
def _ending_unbegun(root: str, table: str, run_id: str | None) -> Iterator[None]:
    """Wraps a block by `ending_unbegun` of the queued run that this job was started for, if there is one."""
    if run_id is None:
        yield
        return
    with closing(open_store(root)) as store:
        table_id = find_entry(store.instance().tables.values(), table).table_id
        with ending_unbegun(store, table_id, run_id):
            yield


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line of the job. Prints its result as JSON, or an error message; returns the exit code."""
    parser = argparse.ArgumentParser(prog="service", description="Run a service of a table.")
    parser.add_argument("--root", required=True, help="the instance's root")
    parser.add_argument("--table", required=True, help="database.name")
    parser.add_argument("--service", required=True, choices=KINDS)
    parser.add_argument("--cluster", help="name of the cluster that this runs on")
    parser.add_argument("--scheduled", help="the time of the schedule that starts this run")
    parser.add_argument("--now", action="store_true", help="run it at once, whether the table has the service or not")
    parser.add_argument(
        "--options", type=json.loads, help="with --now: options of the service in canonical form, as JSON"
    )
    parser.add_argument("--run", help="with --now: id of the queued run to do; otherwise one begins")
    parser.add_argument("--engine", choices=["auto", "spark", "driver"], default="auto", help="with --now")
    parser.add_argument("--memory", default="2g", help="of a local session")
    parser.add_argument("--cores", type=int, help="of a local session")
    parser.add_argument(
        "--tell", help="name of this attempt, under which progress and outcome are stored below the root"
    )
    given = parser.parse_args(argv)

    def work(on_progress: OnProgress) -> Mapping[str, Any]:
        if given.now:
            with _ending_unbegun(given.root, given.table, given.run):
                done = run_service(
                    given.root,
                    given.table,
                    given.service,
                    given.options,
                    cluster=lambda: LocalCluster(given.cores, given.memory),
                    engine=given.engine,
                    on_progress=on_progress,
                    asked=RunRequest(run_id=given.run, cluster=given.cluster),
                )
            sizes = partial(LocalCluster, given.cores, given.memory)
            due = _due_after(given.root, given.table, given.service, done.status, sizes, on_progress)
            return {"service": given.service, **asdict(done), **due}
        return run_scheduled(
            given.root,
            given.table,
            given.service,
            cluster=given.cluster,
            scheduled=given.scheduled,
            sizes=lambda: LocalCluster(given.cores, given.memory),
            on_progress=on_progress,
        )

    return run_program(given.root, given.tell, work)


if __name__ == "__main__":
    sys.exit(main())
