"""Recordings below the sources of a declared dataset that are not registered. Sources are only listed; no recording is
read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from deployer.plan.assess.new_recordings import NewRecordings
from deployer.specs.types.dataset import DatasetSpec

if TYPE_CHECKING:
    from deployer.catalog.datasets.model.record import DatasetRecord


def new_recordings(root: str, record: DatasetRecord | None, spec: DatasetSpec, project: Path) -> NewRecordings:
    """Returns the new recordings. `record` is None for a dataset that does not exist yet. Relative sources are relative
    to `project`."""
    from deployer.catalog.datasets.declared.recordings import find_recordings  # it loads Arrow and Lance

    found = find_recordings(root, record, spec, project)
    return NewRecordings(spec.address, spec.register, len(found.new), found.bytes, found.changed, found.unknown)
