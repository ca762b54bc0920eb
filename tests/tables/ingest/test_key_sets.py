"""Look-ups of keys in a set of keys find what a plain look-up of Python finds, in sorted and in other columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from deployer.tables.ingest.keys.sets import KeySet

RANDOM = np.random.default_rng(7)
MANY = RANDOM.integers(0, 500, 400).tolist()
CASES: dict[str, tuple[Sequence[Any], Sequence[Any]]] = {
    "in order": ([7, 3, 40], range(30)),
    "in order, each value several times": ([7, 3, 40], np.repeat(np.arange(30), 3).tolist()),
    "in order, with gaps": ([5, 6, 7], range(0, 30, 2)),
    "in order, all equal": ([5, 6], [5] * 9),
    "in order, all below": ([90, 91], range(30)),
    "in order, all above": ([-3, -2], range(30)),
    "in order, of the size of the set": (range(20), range(10, 30)),
    "in descending order": ([7, 3, 40], range(30, 0, -1)),
    "in no order": ([7, 3, 40], RANDOM.permutation(60).tolist()),
    "many in order": (MANY, sorted(RANDOM.integers(0, 500, 3000).tolist())),
    "many in no order": (MANY, RANDOM.integers(0, 500, 3000).tolist()),
    "one": ([7, 3], [3]),
    "none": ([7, 3], []),
    "of an empty set": ([], range(30)),
}


@pytest.mark.parametrize("kind", [pa.int64(), pa.int16(), pa.date32(), pa.timestamp("us"), pa.string()], ids=str)
@pytest.mark.parametrize(("known", "others"), CASES.values(), ids=CASES)
def test_one_column(known: Sequence[Any], others: Sequence[Any], kind: pa.DataType) -> None:
    assert_found([column(known, kind)], [column(others, kind)])


@pytest.mark.parametrize("kinds", [(pa.int32(), pa.int64()), (pa.string(), pa.int64())], ids=str)
def test_the_first_of_two_columns_is_in_order(kinds: tuple[pa.DataType, pa.DataType]) -> None:
    known = RANDOM.integers(0, 30, (2, 40))
    others = RANDOM.integers(0, 30, (2, 2000))
    others = others[:, np.argsort(others[0])]
    assert_found(*([column(each, kind) for each, kind in zip(rows, kinds, strict=True)] for rows in (known, others)))


def assert_found(known: Sequence[pa.Array], others: Sequence[pa.Array]) -> None:
    keys = KeySet(known)
    number = dict(zip(tuples(known), keys.codes.tolist(), strict=True))
    codes, places = keys.matches(others)
    expected = [(number[key], place) for place, key in enumerate(tuples(others)) if key in number]
    assert list(zip(codes.tolist(), places.tolist(), strict=True)) == expected


def column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    whole = pa.array(np.asarray(values, np.int64))
    return whole.cast(pa.int32()).cast(kind) if kind == pa.date32() else whole.cast(kind)


def tuples(columns: Sequence[pa.Array]) -> list[tuple[Any, ...]]:
    return list(zip(*(each.to_pylist() for each in columns), strict=True))
