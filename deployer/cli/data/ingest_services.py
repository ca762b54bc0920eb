"""The services that a load runs at its end: how far they are, and what came of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from deployer.services.triggers.after_load import AfterLoad, run_due_services

if TYPE_CHECKING:
    from deployer.compute.spark.local import LocalCluster
    from deployer.services.triggers.due import Due
    from deployer.system.progress import Progress


def services_after(root: str, table: str, cluster: Callable[[], LocalCluster], *, as_json: bool) -> list[AfterLoad]:
    """Runs what is due, telling people of it; the load has been told already."""
    from deployer.cli.summaries.service_run import print_done
    from deployer.console.output import note
    from deployer.console.progress_display import Meter

    with Meter(as_json=as_json) as meter:

        def begun(due: Due) -> None:
            if not as_json:
                note(f"{due.service} is due: {due.why}")
            meter.begin(table, f"{table} {due.service}")

        def report_progress(now: Progress) -> None:
            meter.tell(table, now.doing, now.done, now.total, now.unit)

        done = run_due_services(root, table, cluster, report_progress, begun)
    for each in () if as_json else done:
        if each.done is not None:
            print_done(each.done)
        else:
            note(f"{each.service} did not run to its end, and the rows are loaded: {each.failure}")
    return done
