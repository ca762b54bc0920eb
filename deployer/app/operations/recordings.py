"""The work of `apply` on the recordings of declared datasets once these are as declared."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deployer.app.planning.plan import Planned
from deployer.app.workspace import Workspace
from deployer.errors import DeployerError, NotFound
from deployer.specs.types.dataset import DatasetSpec

if TYPE_CHECKING:
    from deployer.catalog.datasets.declared.apply import DeclaredDatasets


@dataclass(frozen=True, slots=True)
class AppliedRecordings:
    """The registrations of `apply` with the dataset at `address`. `failures` name each recording that could not be, and
    each search index that could not be built; the others are there. `indexes` are search indexes that got their first
    values."""

    address: str
    registered: int = 0
    failures: tuple[str, ...] = ()
    indexes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "address": self.address,
            "registered": self.registered,
            "failures": list(self.failures),
            "indexes": list(self.indexes),
        }


def apply_recordings(workspace: Workspace, planned: Planned) -> tuple[AppliedRecordings, ...]:
    """Registers new recordings of datasets that say so, and builds declared search indexes that had no values yet."""
    targets = planned.plan.targets
    declared = [
        each
        for each in planned.lake.datasets
        if each.recordings or each.search_indexes
        if targets is None or each.address in targets.addresses
    ]
    if not declared:
        return ()
    from deployer.catalog.datasets.declared.apply import DeclaredDatasets
    from deployer.state import open_store

    root = workspace.root(planned.lake)
    with closing(open_store(root)) as store:
        applied = DeclaredDatasets(store, root, workspace.dir)
        done = [_applied(applied, spec, workspace) for spec in sorted(declared, key=lambda each: each.name)]
    return tuple(each for each in done if each.registered or each.failures or each.indexes)


def _applied(applied: DeclaredDatasets, spec: DatasetSpec, workspace: Workspace) -> AppliedRecordings:
    from deployer.catalog.datasets.declared.recordings import find_recordings, register_recordings

    failures: list[str] = []
    registered, built = 0, []
    try:
        record = applied.datasets.by_name(spec.name)
    except NotFound:
        return AppliedRecordings(spec.address)
    if spec.register == "auto":
        found = find_recordings(applied.root, record, spec, workspace.dir)
        failures += (f"{url}: the file changed since it was registered" for url in found.changed)
        try:
            tasks = register_recordings(applied.datasets, record.dataset_id, found)
        except DeployerError as failure:
            tasks = []
            failures.append(str(failure))
        failures += (task.error for task in tasks if task.error is not None)
        registered = sum(task.error is None for task in tasks)
    try:
        built = [index.column for index in applied.build_pending(record.dataset_id)]
    except DeployerError as failure:
        failures.append(str(failure))
    return AppliedRecordings(spec.address, registered, tuple(failures), tuple(built))
