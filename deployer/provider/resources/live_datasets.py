"""The datasets of a lake, read from its instance's log. Most lakes have no datasets, and do not load modules for
them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from deployer.live.model import LiveLake
from deployer.state.model.declared_properties import CATALOG_ENTRY, DATASET_NAME
from deployer.state.model.entities import InstanceState


def with_datasets(live: LiveLake, instance: InstanceState, only: Collection[str] | None = None) -> LiveLake:
    """Returns the lake with its datasets, `only` those at these addresses, and the names of external tables. Raises
    Corrupt for records that are not valid."""
    live = _with_entries(live, instance)
    if not any(name.startswith(DATASET_NAME) for name in instance.properties):
        return live
    from deployer.catalog.datasets.declared.live import with_datasets as read

    return read(live, instance, only)


def _with_entries(live: LiveLake, instance: InstanceState) -> LiveLake:
    if not any(name.startswith(CATALOG_ENTRY) for name in instance.properties):
        return live
    from deployer.catalog.external.registry import external_tables, full_name

    names = frozenset(full_name(each.name) for each in external_tables(instance) if not each.creating)
    return replace(live, entries=names)
