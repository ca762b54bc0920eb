"""Computed columns whose inputs a fill gives other values: what computed them before is not their definition of now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from deployer.datasets.commit_metadata import ComputedFragments
from deployer.datasets.dataset import field_ids
from deployer.datasets.schema.change import stale_readers
from deployer.state.model.computed_by import UNKNOWN, definitions_of

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset
    from deployer.state.model.entities import TableState


def with_outdated(
    computed: ComputedFragments | None,
    dataset: LanceDataset,
    state: TableState,
    written: Sequence[str],
    fragment_ids: Sequence[int],
) -> ComputedFragments | None:
    """Returns what a commit says of computed values, with the columns that read the `written` ones as stale in these
    fragments, as far as they are computed there: a backfill computes them again."""
    readers = {name: each for column in written for name, each in stale_readers(dataset.schema, column, column).items()}
    found = dict(zip(readers, field_ids(dataset, readers), strict=True))
    texts = {file.computed for number in fragment_ids if (file := state.files.get(number)) is not None}
    known = {field for text in texts for field, by in definitions_of(text).items() if {*by} - {UNKNOWN}}
    stale = {found[name]: each.identity for name, each in readers.items() if found[name] in known}
    if not stale:
        return computed
    if computed is None:
        return ComputedFragments(stale, tuple(fragment_ids))
    return replace(computed, identities={**stale, **computed.identities})
