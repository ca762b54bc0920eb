"""Runs the services COMPACT and CLEAN of the instance's tables, one after the other, for `do_global_maintenance`."""

from __future__ import annotations

from collections.abc import Iterator

from deployer.errors import DeployerError
from deployer.runs.wait import wait_for
from deployer.services.api.start import start_on_demand
from deployer.state.model.services import ServiceKind
from deployer.state.store import StateStore
from deployer.tables.open_table import open_entry

KINDS: tuple[ServiceKind, ...] = ("COMPACT", "CLEAN")


def run_services(store: StateStore, root: str) -> Iterator[str]:
    """Runs the declared services that are not paused, and yields a sentence about the outcome of each run.

    Each service runs with its own options, on this machine or on the cluster that it declares. A table without the
    service keeps its files and versions. A run that fails, or that another run excludes, does not stop the other runs.
    """
    for entry in list(store.instance().tables.values()):
        if entry.status != "active":
            continue
        for kind in KINDS:
            try:
                service = store.table(entry.table_id).services.get(kind)
                if service is None or service.paused:
                    continue
                table = open_entry(store, root, entry)
                begun, working = start_on_demand(table, kind)
                run = wait_for(table, begun, None, None, working)
            except DeployerError as failure:
                yield f"{kind} of {entry.full_name} was not run: {failure}"
            else:
                why = f" ({run.reason})" if run.reason else ""
                yield f"run {run.run_id} of {kind} of {entry.full_name}: {run.status}{why}"
