"""The differences between two declarations of one dataset of recordings. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from deployer.plan import changes as c
from deployer.specs.types.dataset import DatasetSpec


def diff_datasets(live: DatasetSpec, desired: DatasetSpec) -> Iterator[c.DatasetAlteration]:
    """Yields the changes that turn the live dataset into the desired one, in the order in which they are applied."""
    address = desired.address
    if live.recordings != desired.recordings:
        yield c.ChangeSources(address, live.recordings, desired.recordings)
    if live.register != desired.register:
        yield c.ChangeRegister(address, live.register, desired.register)
    if live.retention != desired.retention:
        yield c.ChangeVersionsKept(address, live.retention, desired.retention)
    if live.services != desired.services:
        yield c.ChangeDatasetServices(address, live.services, desired.services)
    if live.deletion_protection != desired.deletion_protection:
        yield c.SetDeletionProtection(address, desired.deletion_protection)
    if live.description != desired.description:
        yield c.ChangeDescription(address, live.description, desired.description)
    if live.default_blueprint != desired.default_blueprint:
        yield c.ChangeDefaultBlueprint(address, live.default_blueprint, desired.default_blueprint)
    before = {index.column: index for index in live.search_indexes}
    after = {index.column: index for index in desired.search_indexes}
    for column, index in before.items():
        if column not in after:
            yield c.DropSearchIndex(address, index)
    for column, index in after.items():
        if column not in before:
            yield c.CreateSearchIndex(address, index)
        elif before[column] != index:
            yield c.RebuildSearchIndex(address, before[column], index)
