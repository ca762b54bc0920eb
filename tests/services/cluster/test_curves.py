"""Curves go through every cell once, Hilbert's from neighbour to neighbour; places go by rank, whatever the type."""

from __future__ import annotations

import datetime as dt
import itertools
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployer.services.kinds.cluster.curves import bits_for, hilbert, positions, zorder
from deployer.services.kinds.cluster.quantile_ranks import Scale

GRIDS = st.tuples(st.integers(1, 4), st.integers(1, 4)).filter(lambda grid: grid[0] * grid[1] <= 12)


def cells(columns: int, bits: int) -> np.ndarray:
    """All cells of a grid, columns × cells."""
    return np.array(list(itertools.product(range(1 << bits), repeat=columns)), np.uint64).T


@pytest.mark.parametrize("curve", [zorder, hilbert])
@given(grid=GRIDS)
def test_a_curve_goes_through_every_cell_once(curve: Any, grid: tuple[int, int]) -> None:
    columns, bits = grid
    found = curve(list(cells(columns, bits)), bits)
    assert sorted(found.tolist()) == list(range(1 << columns * bits))


@given(grid=GRIDS)
def test_neighbours_on_the_hilbert_curve_are_neighbours_in_space(grid: tuple[int, int]) -> None:
    columns, bits = grid
    places = cells(columns, bits)
    along = places[:, np.argsort(hilbert(list(places), bits))].astype(np.int64)
    assert (np.abs(np.diff(along, axis=1)).sum(axis=0) == 1).all()


@given(grid=GRIDS, number=st.integers(0, 2**12 - 1))
def test_zorder_interleaves_bits(grid: tuple[int, int], number: int) -> None:
    columns, bits = grid
    number %= 1 << columns * bits
    places = [0] * columns
    for bit in range(columns * bits):
        places[columns - 1 - bit % columns] |= (number >> bit & 1) << bit // columns
    assert zorder([np.array([place], np.uint64) for place in places], bits).tolist() == [number]


@pytest.mark.parametrize("columns", [1, 2, 3, 5, 16])
def test_as_many_columns_as_there_are_fit_into_a_number(columns: int) -> None:
    bits = bits_for(columns)
    last = [np.array([(1 << bits) - 1], np.uint64)] * columns
    for curve in ("sort", "zorder", "hilbert"):
        assert int(positions(curve, last, bits)[0]) < 1 << 64
    assert int(zorder(last, bits)[0]) == (1 << columns * bits) - 1


YEARS = (2020, 1969)
VALUES = [
    pytest.param(pa.int8(), [-128, 127, 0, 5], id="int8"),
    pytest.param(pa.uint64(), [0, 2**64 - 1, 7], id="uint64"),
    pytest.param(pa.bool_(), [True, False, True], id="bool"),
    pytest.param(pa.float64(), [1.5, float("nan"), -float("inf"), float("inf"), -0.0, 0.0], id="float64"),
    pytest.param(pa.float16(), [np.float16(1.5), np.float16(-2)], id="float16"),
    pytest.param(pa.string(), ["a", "ab", "", "é", "z" * 100, "z" * 99 + "y"], id="string"),
    pytest.param(pa.binary(), [b"\xff", b"", b"\x00"], id="binary"),
    pytest.param(pa.decimal128(10, 2), [Decimal("-1.25"), Decimal("100.00"), Decimal("9.99")], id="decimal"),
    pytest.param(
        pa.timestamp("us", "Europe/Berlin"),
        [dt.datetime(2020, 1, 1, tzinfo=dt.UTC), dt.datetime(1969, 1, 1, tzinfo=dt.UTC)],
        id="time",
    ),
    pytest.param(pa.date32(), [dt.date(2020, 1, 1), dt.date(1900, 1, 1)], id="date"),
    pytest.param(pa.string(), [], id="only nulls"),
]


def order(values: list[Any]) -> list[Any]:
    """Ascending, NaN and then null last."""
    return sorted(values, key=lambda value: (value is None, value != value, value if value == value else 0))


@pytest.mark.parametrize(("kind", "values"), VALUES)
def test_places_are_in_the_order_of_values(kind: pa.DataType, values: list[Any]) -> None:
    ordered = order([*values, None, *values])
    scale = Scale.of(pa.chunked_array([pa.array(ordered[::-1], kind), pa.array([], kind)]), 12)
    for column in (pa.array(ordered, kind), pa.array([value for value in ordered if value is not None], kind)):
        places = scale.of_rows(column).tolist()
        assert places == sorted(places) and all(0 <= place < 1 << 12 for place in places)
        distinct = len(set(map(repr, column.to_pylist()))) - (kind == pa.float64())  # -0.0 is 0.0
        assert len(set(places)) == distinct


@pytest.mark.parametrize("text", [True, False])
def test_places_are_spread_however_values_are(*, text: bool) -> None:
    """Nine of ten values are among the least thousandth, and half of the rows is below half of the places."""
    values = np.random.default_rng(1).pareto(0.5, 20_000)
    column = pa.array([f"{value:020.6f}" for value in values]) if text else pa.array(values)
    places = Scale.of(pa.chunked_array([column.slice(0, 5_000)]), 12).of_rows(column)
    assert abs(float((places < 1 << 11).mean()) - 0.5) < 0.05
    assert len(np.unique(places)) > 3_000
    assert (np.diff(places[np.argsort(values)].astype(np.int64)) >= 0).all()


def test_values_that_the_sample_lacks_have_places_between_its_neighbours() -> None:
    scale = Scale.of(pa.chunked_array([["b", "d", "d", "f"]]), 12)
    places = dict(zip("abcdefg", scale.of_rows(pa.array(list("abcdefg"))).tolist(), strict=True))
    assert places["a"] == places["b"] == places["c"] == 0
    assert places["d"] == places["e"] == 1024 and places["f"] == places["g"] == 3072
