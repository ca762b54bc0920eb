"""The new recordings in a plan: those below the sources of declared datasets that are not registered. Sources are only
listed; no recording is read."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

from deployer.app.new_recordings import new_recordings
from deployer.app.workspace import Workspace
from deployer.errors import NotFound
from deployer.live.model import LiveLake
from deployer.plan.assess.new_recordings import NewRecordings
from deployer.plan.model import Plan
from deployer.specs.model import Lake
from deployer.specs.types.dataset import DatasetSpec


def with_recordings(workspace: Workspace, plan: Plan, lake: Lake, live: LiveLake, root: str) -> Plan:
    """Returns the plan with the new recordings of each dataset that `lake` declares."""
    declared = [dataset for dataset in lake.datasets if dataset.recordings]
    if not declared:
        return plan
    found = [_found(workspace, dataset, live, root) for dataset in declared]
    return replace(plan, recordings=tuple(sorted(found, key=lambda each: each.address)))


def _found(workspace: Workspace, spec: DatasetSpec, live: LiveLake, root: str) -> NewRecordings:
    from deployer.catalog.datasets.model.record import record_of
    from deployer.state import open_reader

    record, now = None, live.datasets.get(spec.address)
    if now is not None:
        try:
            with closing(open_reader(root)) as store:
                record = record_of(store.instance(), now.dataset_id)
        except NotFound:
            record = None
    return new_recordings(root, record, spec, workspace.dir)
