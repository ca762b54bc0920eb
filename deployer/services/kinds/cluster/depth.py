"""The overlap depth of files: the number of files whose ranges contain a point of the columns' space, on average and at
most.

A depth of one means that no two files share a value of all columns. A depth equal to the number of files means that a
search for any row opens all of them. Snowflake calls it the clustering depth; here it is over all columns at once. A
file is the box between its least and largest values. A sample point is in a file chosen by its share of the rows, and
anywhere in the file's box; values between two corners of boxes count as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deployer.datasets.ordering.clustering import Bounds
from deployer.platform.files.json_values import JSON

if TYPE_CHECKING:
    from numpy.typing import NDArray

POINTS = 4096  #: sample points, in addition to the middles of all boxes
_CELLS = 1 << 24  # comparisons at a time


@dataclass(frozen=True, slots=True)
class Depth:
    """The overlap depth of files. `average` and `most` are 0 without files.

    `by_column` has the average for each single column: the number of files that a condition on it reads.
    """

    average: float = 0.0
    most: int = 0
    files: int = 0
    rows: int = 0
    by_column: tuple[float, ...] = ()

    def as_json(self) -> dict[str, JSON]:
        return {
            "average": round(self.average, 2),
            "most": self.most,
            "files": self.files,
            "rows": self.rows,
            "by_column": [round(each, 2) for each in self.by_column],
        }


def overlap_depth(boxes: Sequence[tuple[Bounds, int]]) -> Depth:
    """Returns the depth of files by their bounds and rows. The same files give the same figures."""
    rows = np.array([count for _, count in boxes], np.float64)
    if not boxes:
        return Depth()
    low, high = _ranks(boxes)
    total = int(rows.sum())
    draw = np.random.default_rng(0)
    weights = rows / total if total else None
    chosen = draw.choice(len(boxes), POINTS, p=weights)
    spans = high[chosen] - low[chosen] + 1
    points = low[chosen] + (draw.random(spans.shape) * spans).astype(np.int64)
    counts = _counts(low, high, points)
    most = max(counts.max(), _counts(low, high, (low + high) // 2).max())
    alone = tuple(
        float(_counts(low[:, [column]], high[:, [column]], points[:, [column]]).mean())
        for column in range(low.shape[1])
    )
    return Depth(float(counts.mean()), int(most), len(boxes), total, alone)


def all_leaves(leaves: Sequence[Depth]) -> Depth:
    """Returns the depth of a table: the average by rows, and the maximum of its leaves."""
    rows = sum(each.rows for each in leaves)
    files = sum(each.files for each in leaves)
    if not rows:
        return Depth(files=files)
    average = sum(each.average * each.rows for each in leaves) / rows
    columns = max(len(each.by_column) for each in leaves)
    alone = [sum(each.by_column[i] * each.rows for each in leaves if each.by_column) / rows for i in range(columns)]
    return Depth(average, max(each.most for each in leaves), files, rows, tuple(alone))


def _ranks(boxes: Sequence[tuple[Bounds, int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns the boxes' corners (files × columns) as ranks: even for values of corners, odd for all between two of
    them."""
    low, high = [], []
    for column in range(len(boxes[0][0][0])):
        lows = [bounds[0][column] for bounds, _ in boxes]
        highs = [bounds[1][column] for bounds, _ in boxes]
        rank = {value: 2 * i for i, value in enumerate(sorted({*lows, *highs}))}
        low.append([rank[value] for value in lows])
        high.append([rank[value] for value in highs])
    return np.array(low, np.int64).T, np.array(high, np.int64).T


def _counts(low: NDArray[np.int64], high: NDArray[np.int64], points: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the number of boxes that hold each point."""
    step = max(1, _CELLS // len(low))
    found = [
        np.logical_and.reduce(
            [
                (low[:, column] <= part[:, column, None]) & (part[:, column, None] <= high[:, column])
                for column in range(low.shape[1])
            ]
        ).sum(axis=1)
        for part in (points[start : start + step] for start in range(0, len(points), step))
    ]
    return np.concatenate(found)
