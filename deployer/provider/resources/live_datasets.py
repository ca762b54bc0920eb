"""The datasets of a lake, read from its instance's log. Most lakes have none, and load nothing that datasets need."""

from __future__ import annotations

from collections.abc import Collection

from deployer.live.model import LiveLake
from deployer.state.model.declared_properties import DATASET_NAME
from deployer.state.model.entities import InstanceState


def with_datasets(live: LiveLake, instance: InstanceState, only: Collection[str] | None = None) -> LiveLake:
    """Returns the lake with its datasets; `only` those at these addresses. Raises Corrupt for records that are not
    valid."""
    if not any(name.startswith(DATASET_NAME) for name in instance.properties):
        return live
    from deployer.catalog.datasets.declared.live import with_datasets as read

    return read(live, instance, only)
