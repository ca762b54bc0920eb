"""Datasets of recordings in the report: their registrations, new recordings below their sources, and their search."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from deployer.app.new_recordings import new_recordings
from deployer.errors import NotFound
from deployer.plan.assess.new_recordings import NewRecordings, describe_recordings
from deployer.specs.model import Lake
from deployer.state import open_reader
from deployer.state.model.declared_properties import DATASET_NAME
from deployer.state.reader import StateReader


@dataclass(frozen=True, slots=True)
class DatasetView:
    """A dataset. `manager` is the stack that manages it; empty for a dataset that a client of the catalog made. `new`
    describes the unregistered recordings below its sources; empty where there are none. `searches` describes its search
    indexes."""

    name: str
    manager: str
    description: str
    segments: int
    layers: int
    bytes: int
    sources: tuple[str, ...]
    searches: tuple[str, ...]
    blueprint: str
    new: str


def lake_datasets(project: Path, lake: Lake, root: str) -> tuple[DatasetView, ...]:
    """Returns the datasets by name. Relative sources are relative to `project`. No recording is read: the files below
    the sources are only listed."""
    try:
        store = open_reader(root)
    except NotFound:
        return ()
    with closing(store):
        if not any(name.startswith(DATASET_NAME) for name in store.instance().properties):
            return ()
        return _datasets(store, project, lake, root)


def _datasets(store: StateReader, project: Path, lake: Lake, root: str) -> tuple[DatasetView, ...]:
    from deployer.catalog.datasets.declared.live import live_of
    from deployer.catalog.datasets.model.record import records_of
    from deployer.catalog.datasets.reads.index import Indexes

    found = []
    for record in records_of(store.instance()):
        if record.kind != "dataset":
            continue
        live, index = live_of(record), Indexes(root).of(record)
        spec, layers = live.spec, index.layers
        declared = lake.dataset(record.name)
        new = None if declared is None else new_recordings(root, record, declared, project)
        searches = tuple(f"{each.column} ({each.kind} by {each.timeline})" for each in spec.search_indexes)
        sources = tuple(f"{each.prefix} (layer {each.layer})" for each in spec.recordings)
        blueprint = spec.default_blueprint.file if spec.default_blueprint else ""
        counted = (len(index.numbers), layers.num_rows, sum(layers["size"].to_pylist()))
        found.append(
            DatasetView(record.name, live.owner, spec.description, *counted, sources, searches, blueprint, _text(new))
        )
    return tuple(sorted(found, key=lambda each: each.name))


def _text(new: NewRecordings | None) -> str:
    return "" if new is None or new.is_empty else describe_recordings(new).partition(": ")[2]
