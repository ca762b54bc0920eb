"""Finds the index that made a read fail. Lance's messages name only files, or bytes without a file."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING

from deployer.datasets.errors import first_line, is_of_lance, refused_by_storage
from deployer.datasets.indexes.read import ObservedIndex, observed_indexes
from deployer.errors import Corrupt, DeployerError
from deployer.specs.schema.index_kinds import VECTOR_KINDS

if TYPE_CHECKING:
    import lance

_SEGMENT = re.compile(r"_indices/([0-9a-f-]{36})")


def damaged_index(
    dataset: lance.LanceDataset, failure: BaseException, sql: str, columns: Collection[str], address: str
) -> Corrupt | None:
    """Returns the error for a read of the opened dataset that failed because of the files of an index; None where
    another cause is possible.

    It reads the indexes of `columns`, and of the columns that the condition `sql` names.
    """
    if refused_by_storage(failure, str(dataset.uri)) is not None:
        return None
    try:
        indexes = observed_indexes(dataset).values()
    except BaseException as other:
        if not is_of_lance(other):
            raise
        return None
    named = _SEGMENT.search(str(failure))
    text = sql.lower()
    for each in indexes:
        [column] = each.index.columns
        if named is not None:
            if named[1] in each.segments:
                return _damaged(each, failure, address)
        elif column in columns or column.rpartition(".")[2].lower() in text:
            found = _failure_of(dataset, each)
            if found is not None:
                return _damaged(each, found, address)
    return None


def _failure_of(dataset: lance.LanceDataset, index: ObservedIndex) -> BaseException | None:
    """Returns the exception that Lance raises for the index's files; None where it can read them.

    Only the beginning of an index on vectors is read, because it may be as large as the vectors.
    """
    try:
        dataset.stats.index_stats(index.index.name)
        if index.index.kind not in VECTOR_KINDS:
            dataset.prewarm_index(index.index.name)
    except DeployerError:
        raise
    except BaseException as failure:
        if not is_of_lance(failure):
            raise
        return failure
    return None


def _damaged(index: ObservedIndex, failure: BaseException, address: str) -> Corrupt:
    name = index.index.name
    return Corrupt(
        f"the index {name} is damaged, and no row is lost: {first_line(failure)}",
        where=address,
        remedy=f"build it again: from Python `drop_index({name!r})` of the table, then `deployer up` where the specs "
        "declare the index, else the call that created it",
    )
