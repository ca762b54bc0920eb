"""One data file (a Lance fragment) of a table, as the state stores it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

#: Metadata of fields of `File` that are empty in most tables. Entries and snapshots omit them if no file has a value.
SPARSE: Mapping[str, bool] = {"sparse": True}

Key: TypeAlias = bytes  #: an encoded key (see `keys`); the alias is needed because `File` has a field `bytes`
Bounds: TypeAlias = tuple[Key | None, Key | None]  #: lower <= encoded value < upper; None is unbounded


@dataclass(frozen=True, slots=True)
class File:
    """One data file, which is a Lance fragment.

    `min_key` and `max_key` are the first and last encoded row key in the file, both inclusive. They are None when the
    table has no row keys or the fragment was not read. `column_min` and `column_max` are the smallest and largest value
    of each row-key column (`keys.encode_value`). `sorted`: the rows are in the order of row keys, then sort keys.

    `clustering` is the arrangement of a file that CLUSTER wrote, such as `zorder:3,7`: the curve, and the columns by
    Lance's field ids. It is empty for other files. `cluster_min` and `cluster_max` are the smallest and largest value
    of each of these columns (`keys.encode_nullable`), both inclusive; for long values they are bounds of the values.

    `computed` stores the definitions that computed values of columns in the file (see `computed_by`); it is empty if
    there are none.
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
        """Returns whether the rows are in the order of a clustering, which sorting them by key would undo."""
        return bool(self.clustering) and not self.sorted

    def overlaps(self, lower: Key, upper: Key | None) -> bool:
        """Returns whether the file can have a key k with lower <= k < upper; None as `upper` is unbounded."""
        if self.min_key is None or self.max_key is None:
            return True
        return self.max_key >= lower and (upper is None or self.min_key < upper)

    def overlaps_columns(self, ranges: Mapping[int, Bounds]) -> bool:
        """Returns whether the file can have a row whose i-th row-key column is within `ranges[i]`, for each i in
        `ranges`."""
        return all(
            i >= len(self.column_min)
            or ((lower is None or self.column_max[i] >= lower) and (upper is None or self.column_min[i] < upper))
            for i, (lower, upper) in ranges.items()
        )
