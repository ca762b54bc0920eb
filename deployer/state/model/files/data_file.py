"""One data file (a Lance fragment) of a table, as the state stores it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

#: Fields of `File` that most tables have nothing in: entries and snapshots leave them out where no file has any.
SPARSE: Mapping[str, bool] = {"sparse": True}

Key: TypeAlias = bytes  #: an encoded key (`keys`); its own name because files have a field `bytes`
Bounds: TypeAlias = tuple[Key | None, Key | None]  #: lower <= encoded value < upper; None is unbounded


@dataclass(frozen=True, slots=True)
class File:
    """One Lance fragment.

    `min_key` and `max_key` are the first and last encoded row key in it, both inclusive; None when the table has no
    row keys or the fragment was not looked into. `column_min` and `column_max` are the same for each row-key column
    alone (`keys.encode_value`). `sorted`: its rows are in the order of row keys, then sort keys.

    `clustering` names how CLUSTER arranged it, as `zorder:3,7`: the curve, and the columns by Lance's field ids; empty
    for a file that it did not write. `cluster_min` and `cluster_max` are the least and largest value of each of these
    columns (`keys.encode_nullable`), both inclusive; of long values bounds of them.

    `computed` names the definitions that computed the values of columns in it (`computed_by`); empty where none did.
    """

    fragment_id: int
    partition: str | None
    rows: int
    bytes: int
    min_key: Key | None = None
    max_key: Key | None = None
    column_min: tuple[Key, ...] = ()
    column_max: tuple[Key, ...] = ()
    sorted: bool = False
    clustering: str = field(default="", metadata=SPARSE)
    cluster_min: tuple[Key, ...] = field(default=(), metadata=SPARSE)
    cluster_max: tuple[Key, ...] = field(default=(), metadata=SPARSE)
    computed: str = field(default="", metadata=SPARSE)

    @property
    def keeps_clustering(self) -> bool:
        """Returns whether its rows are in an order of their own, which sorting them by key would undo."""
        return bool(self.clustering) and not self.sorted

    def overlaps(self, lower: Key, upper: Key | None) -> bool:
        """Returns whether it can hold a key k with lower <= k < upper."""
        if self.min_key is None or self.max_key is None:
            return True
        return self.max_key >= lower and (upper is None or self.min_key < upper)

    def overlaps_columns(self, ranges: Mapping[int, Bounds]) -> bool:
        """Returns whether it can hold a row whose i-th row-key column is within `ranges[i]`, for every i given."""
        return all(
            i >= len(self.column_min)
            or ((lower is None or self.column_max[i] >= lower) and (upper is None or self.column_min[i] < upper))
            for i, (lower, upper) in ranges.items()
        )
