"""Gives an index of a dataset another name. Its files stay: they lie in folders called by its segments' ids.

pylance has no call for that. It is the commit that makes indexes, with the segments of the old name removed and added
under the new one. Whatever Lance knows of a segment goes with it, or the index would be ignored or lose its parameters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deployer.datasets.dataset import dataset_location, open_dataset
from deployer.datasets.index_sections import segment_details
from deployer.datasets.indexes import Remembered, observed_indexes, remembered_indexes
from deployer.datasets.lance_transactions import ChangeDataset, commit_now
from deployer.datasets.recovery.rollforward import refresh
from deployer.errors import NotFound
from deployer.system.failpoints import reached
from deployer.tables.indexes.build import change_remembered, committed, remember

if TYPE_CHECKING:
    import lance

    from deployer.specs.model import IndexSpec
    from deployer.state.store import StateStore


def rename_index(store: StateStore, root: str, table_id: str, name: str, after: IndexSpec) -> None:
    """Calls the index of that name as `after`, which it equals in all else. Can be repeated after a crash.

    Raises Conflict when others keep committing, NotFound when there is no such index.
    """
    entry = store.instance().tables[table_id]
    location = dataset_location(root, entry)
    state = refresh(store, root, table_id)
    waiting = remembered_indexes(state.properties).get(name)
    if name in observed_indexes(open_dataset(location)):
        remember(store, table_id, Remembered(after, "building", state.dataset))  # what Lance does not tell is kept
        reached("tables.index.begun")
        committed(entry, root, lambda dataset: _commit(dataset, location, name, after.name))
        reached("tables.index.renamed")
        refresh(store, root, table_id)
    elif waiting is not None:  # it has no files yet
        renamed = Remembered(after, waiting.status, waiting.dataset)
        change_remembered(
            store, table_id, lambda all_: {**{key: all_[key] for key in all_ if key != name}, after.name: renamed}
        )
    else:
        raise NotFound(f"the table has no index {name} any more", where=entry.address, remedy="preview again")


def _commit(dataset: lance.LanceDataset, location: str, before: str, after: str) -> None:
    commit_now(location, dataset, ChangeDataset(_renaming(dataset, location, before, after)))


def _renaming(
    dataset: lance.LanceDataset, location: str, before: str, after: str
) -> lance.LanceOperation.BaseOperation:
    import lance
    from lance.dataset import Index

    details = segment_details(location, dataset.version)

    def segments(name: str) -> list[Index]:
        return [
            Index(
                uuid=segment.uuid,
                name=name,
                fields=described.fields,
                dataset_version=segment.dataset_version_at_last_update,
                fragment_ids=segment.fragment_ids,
                index_version=segment.index_version,
                created_at=segment.created_at,
                base_id=segment.base_id,
                index_details=details[str(segment.uuid)],
                covering_fields=segment.covering_fields,
            )
            for described in dataset.describe_indices()
            if described.name == before
            for segment in described.segments
        ]

    return lance.LanceOperation.CreateIndex(segments(after), segments(before))
