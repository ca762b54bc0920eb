"""The part of `apply` that registers recordings, after the declared datasets are applied."""

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
    """The registrations by `apply` for the dataset at `address`. `failures` describe each recording that could not be
    registered, and each search index that could not be built; all others succeeded. `indexes` are the search indexes
    that got their first values."""

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
    """Registers new recordings of datasets that declare `register: auto`, and builds declared search indexes that have
    no values yet. Returns the datasets for which it did something."""
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
