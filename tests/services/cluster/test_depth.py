"""Overlap depth: boxes of files, and how many a point falls into."""

from __future__ import annotations

import pytest

from deployer.datasets.ordering.clustering import Bounds
from deployer.services.kinds.cluster.depth import Depth, all_leaves, overlap_depth


def box(*sides: tuple[int, int]) -> Bounds:
    return tuple(bytes([low]) for low, _ in sides), tuple(bytes([high]) for _, high in sides)


CASES = [
    ("one file", [box((1, 9))], 1.0, 1),
    ("apart", [box((1, 2)), box((3, 4)), box((5, 5))], 1.0, 1),
    ("all the same", [box((1, 9))] * 7, 7.0, 7),
    ("same in one column alone", [box((1, 9), (1, 2)), box((1, 9), (3, 4))], 1.0, 1),
    ("one around the others", [box((1, 9)), box((2, 3)), box((5, 6))], (17 / 11 + 2 + 2) / 3, 2),
]


@pytest.mark.parametrize(("boxes", "average", "most"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_depth(boxes: list[Bounds], average: float, most: int) -> None:
    found = overlap_depth([(each, 10) for each in boxes])
    assert found.average == pytest.approx(average, abs=0.05)
    assert (found.most, found.files, found.rows) == (most, len(boxes), 10 * len(boxes))
    assert found == overlap_depth([(each, 10) for each in boxes])


def test_each_column_has_its_own() -> None:
    found = overlap_depth([(box((1, 9), (each, each)), 1) for each in range(5)])
    assert (found.average, found.by_column) == (1.0, (5.0, 1.0))


def test_rows_weigh() -> None:
    large, twins = box((1, 2)), [box((5, 6)), box((5, 6))]
    found = overlap_depth([(large, 980), *((each, 10) for each in twins)])
    assert found.average == pytest.approx(1.02, abs=0.02) and found.most == 2


def test_of_a_table_it_is_that_of_its_leaves_by_rows() -> None:
    leaves = [Depth(1.0, 1, 1, 30, (1.0,)), Depth(5.0, 6, 9, 10, (5.0,))]
    assert all_leaves(leaves) == Depth(2.0, 6, 10, 40, (2.0,))
    assert all_leaves([]) == overlap_depth([]) == Depth()
