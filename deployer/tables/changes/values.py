"""Finds the rows with other values, where a commit wrote values of columns in place."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deployer.tables.changes.commits import Part
from deployer.tables.changes.rows import ADDRESS, FeedColumn, Version, addresses_of, offsets_of

if TYPE_CHECKING:
    from numpy.typing import NDArray


def changed_values(now: Version, then: Version, part: Part) -> NDArray[np.bool_]:
    """Returns which rows of the fragment are in both versions and have other values in the written columns. Only these
    columns are read."""
    ids = {each.id(): each.name() for each in now.dataset.lance_schema.fields()}
    schema = now.dataset.scanner(blob_handling="all_binary").projected_schema
    columns = [FeedColumn(ids[each], each, now.number, schema.field(ids[each]).type) for each in part.columns]
    found = np.zeros(part.rows, np.bool_)
    for one, other in zip_longest(now.rows([part], columns), then.rows([part], columns)):
        if one is None or other is None or not one.column(ADDRESS).equals(other.column(ADDRESS)):
            return _changed_of_both(now, then, part, columns)
        _mark(found, one, other, columns)
    return found


def _changed_of_both(now: Version, then: Version, part: Part, columns: Sequence[FeedColumn]) -> NDArray[np.bool_]:
    """Returns the same where rows were deleted, or came back, as well; the columns are in memory at once."""
    found = np.zeros(part.rows, np.bool_)
    both = addresses_of(part, now.there(part) & then.there(part))
    if len(both):
        one, other = (pa.Table.from_batches(each.rows([part], columns, both)).combine_chunks() for each in (now, then))
        _mark(found, one.to_batches()[0], other.to_batches()[0], columns)
    return found


def _mark(found: NDArray[np.bool_], one: pa.RecordBatch, other: pa.RecordBatch, columns: Sequence[FeedColumn]) -> None:
    """Marks the rows that differ, of two batches of the same rows, by their offsets in the fragment."""
    unlike = np.zeros(one.num_rows, np.bool_)
    for column in columns:
        unlike |= differ(one.column(column.name), other.column(column.name))
    found[offsets_of(one.column(ADDRESS))[unlike]] = True


def differ(one: Any, other: Any) -> NDArray[np.bool_]:
    """Returns the positions at which two arrays of one type differ; null differs from all values."""
    null, was_null = (np.asarray(pc.is_null(each)) for each in (one, other))
    found: NDArray[np.bool_] = null != was_null
    if null.all() or was_null.all():
        return found
    found |= _unequal(one, other) & ~null & ~was_null
    return found


def _unequal(one: Any, other: Any) -> NDArray[np.bool_]:
    kind = one.type
    if isinstance(kind, pa.BaseExtensionType):
        return _unequal(one.storage, other.storage)
    if pa.types.is_fixed_size_list(kind) and pa.types.is_primitive(kind.value_type):
        size = kind.list_size
        first, second = (
            np.asarray(each.values.slice(each.offset * size, len(each) * size)).reshape(len(each), size)
            for each in (one, other)
        )
        unlike: NDArray[np.bool_] = (first != second).any(axis=1)
        return unlike
    if pa.types.is_nested(kind) or pa.types.is_dictionary(kind):
        texts = ([repr(value) for value in each.to_pylist()] for each in (one, other))
        return np.array([a != b for a, b in zip(*texts, strict=True)], np.bool_)
    others: NDArray[np.bool_] = np.asarray(pc.fill_null(pc.not_equal(one, other), False))
    return others
