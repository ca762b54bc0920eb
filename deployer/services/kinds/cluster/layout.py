"""The order of rows that CLUSTER makes, with all that a process needs to compute it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from deployer.datasets.ordering.clustering import value_of
from deployer.runs.rewriting.merging import merge_order
from deployer.services.kinds.cluster.curves import Curve, bits_for, positions
from deployer.services.kinds.cluster.quantile_ranks import Scale, scales_of

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Arrangement:
    """An order of rows by a curve over columns of the types `kinds`, which may be fields of structs: `gate.number`.

    For `sort`, `rest` are the table's keys after the columns, and `order` all of them. `name` marks the files.
    """

    curve: Curve
    columns: tuple[str, ...]
    kinds: tuple[str, ...]
    rest: tuple[str, ...]
    order: tuple[str, ...]
    name: str

    @property
    def is_sort(self) -> bool:
        """Returns whether rows are simply sorted, which is also the case for a curve over one column."""
        return self.curve == "sort" or len(self.columns) == 1

    @property
    def keeps_order(self) -> bool:
        """Returns whether rows in this order are also in the table's own order."""
        return self.is_sort and bool(self.order) and (*self.columns, *self.rest)[: len(self.order)] == self.order

    @property
    def needed(self) -> list[str]:
        """The table's columns that have to be read to compute the order."""
        return list(dict.fromkeys(path.partition(".")[0] for path in (*self.columns, *self.rest)))

    def keys(self, rows: pa.Table | pa.RecordBatch) -> list[Any]:
        """Returns the columns' values."""
        return [value_of(rows, path) for path in self.columns]

    def scales(self, samples: Sequence[Any]) -> tuple[Scale, ...]:
        """Makes the layout from samples of the columns."""
        return scales_of(samples, bits_for(len(self.columns)))

    def positions(self, keys: Sequence[Any], scales: Sequence[Scale]) -> NDArray[np.uint64]:
        """Returns the position of each row on the curve."""
        places = [scale.of_rows(column) for scale, column in zip(scales, keys, strict=True)]
        return positions(self.curve, places, bits_for(len(self.columns)))

    def sorted_places(self, rows: pa.Table, scales: Sequence[Scale]) -> NDArray[np.int64]:
        """Returns the positions of the rows in this order."""
        keys = self.keys(rows)
        if self.is_sort:
            columns = [*keys, *(rows[name] for name in self.rest)]
            return merge_order(pa.table(columns, [str(i) for i in range(len(columns))]))
        return _order_of(self.positions(keys, scales), bits_for(len(self.columns)) * len(self.columns))


def _order_of(found: NDArray[np.uint64], bits: int) -> NDArray[np.int64]:
    """Returns the positions of numbers below 2**bits in ascending order; equal numbers keep their order."""
    places = max(1, len(found) - 1).bit_length()
    if bits + places > 64:
        return np.argsort(found, kind="stable")
    packed = found << np.uint64(
        places
    )  # with the row's own position in the number: sorting plain numbers is several times faster
    packed |= np.arange(len(found), dtype=np.uint64)
    packed.sort()
    packed &= np.uint64((1 << places) - 1)
    return packed.astype(np.int64)
