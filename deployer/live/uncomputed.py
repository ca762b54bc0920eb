"""Computed columns of which some rows lack the values of the current definition, from the table's state.

The state identifies columns by Lance's field ids. The dataset is opened to read these ids only where some file lacks
values. For most tables the records of the files alone show that nothing is missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deployer.datasets.dataset import ids_by_name, open_dataset
from deployer.datasets.errors import lance_errors
from deployer.state.model.files.computed_by import definitions_of, has_others, is_computed

if TYPE_CHECKING:
    from deployer.specs.types.computed import Computed
    from deployer.specs.types.types import Column
    from deployer.state.model.entities import TableState


@dataclass(frozen=True, slots=True)
class UncomputedColumn:
    """A computed column, and the rows of files whose values its current definition did not compute completely.

    `stale` counts rows of files with values of another definition, `missing` rows of the other files. `version` is that
    of the current definition.
    """

    name: str
    version: str
    stale: int
    missing: int


def uncomputed_columns(
    state: TableState, columns: Sequence[Column], ids_of: Callable[[Sequence[str]], Mapping[str, int]]
) -> tuple[UncomputedColumn, ...]:
    """Returns the computed columns that lack values in some rows. `ids_of` returns Lance's field ids of columns; it is
    called only where the state alone does not show that all values are computed."""
    computed = {column.name: column.computed for column in columns if column.computed is not None}
    if not computed or not state.files.rows:
        return ()
    rows = Counter[str]()
    for file in state.files:
        rows[file.computed] += file.rows
    if all(_says_all(text, computed) for text in rows):
        return ()
    ids = ids_of(tuple(computed))
    found = (_uncomputed(name, one, ids[name], rows) for name, one in computed.items() if name in ids)
    return tuple(each for each in found if each.stale or each.missing)


def ids_of_columns(location: str, names: Sequence[str]) -> Mapping[str, int]:
    """Returns Lance's field ids of columns of the dataset at `location`. Raises Corrupt where it cannot be read."""
    with lance_errors(location):
        return ids_by_name(open_dataset(location), names)


def _says_all(text: str, computed: Mapping[str, Computed]) -> bool:
    """Returns whether a file has values of exactly the current definitions, for any field."""
    found = Counter(definitions_of(text).values())
    return found == Counter((each.identity,) for each in computed.values())


def _uncomputed(name: str, computed: Computed, field: int, rows: Mapping[str, int]) -> UncomputedColumn:
    lacking = {text: number for text, number in rows.items() if not is_computed(text, field, computed.identity)}
    stale = sum(number for text, number in lacking.items() if has_others(text, field, computed.identity))
    return UncomputedColumn(name, computed.version, stale, sum(lacking.values()) - stale)
