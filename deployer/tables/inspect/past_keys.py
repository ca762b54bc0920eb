"""The columns and row keys that a table had at an older version: a rewrite may have changed its keys since."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from deployer.datasets.dataset import field_ids, open_dataset
from deployer.errors import InvalidInput, NotFound
from deployer.specs.types.arrow import arrow_schema, columns_of
from deployer.specs.types.types import format_type
from deployer.state.log.updates import TableRebuilt, TableRestored, TableRewritten
from deployer.state.model.entities import TableState
from deployer.tables.inspect.versions import At, dataset_at
from deployer.tables.open_table import ReadTable

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset


@dataclass(frozen=True, slots=True)
class KeysThen:
    """The columns of a version, and its row keys with their kinds (see `deployer.state.model.keys`)."""

    schema: pa.Schema
    row_keys: tuple[str, ...]
    kinds: tuple[str, ...]


def keys_at(table: ReadTable, at: At | None) -> KeysThen:
    """Returns the columns and row keys at a version or time, as `dataset_at` takes it; None is now.

    Raises InvalidInput when the row keys of then are not known any more.
    """
    state = table.state
    if at is None:
        return _today(table)
    number, then, version = dataset_at(table, at)
    if (number, version) == (state.dataset, state.lance_version):
        return _today(table)
    dataset = open_dataset(then.uri, version)
    schema = arrow_schema(columns_of(dataset.schema))
    recorded = state if number == state.dataset else _last_state_of(table, number)
    if recorded is None:
        raise InvalidInput(
            f"the row keys of version {number}:{version} are unknown",
            where=table.address,
            remedy="use a condition: --where, or `where` in Python",
        )
    row_keys = _names_in(dataset, recorded)
    kinds = {column.name: format_type(column.type) for column in columns_of(schema)}
    return KeysThen(schema, row_keys, tuple(kinds[name] for name in row_keys))


def _today(table: ReadTable) -> KeysThen:
    return KeysThen(table.schema, table.row_keys, table.kinds)


def _last_state_of(table: ReadTable, number: int) -> TableState | None:
    """Returns the last state in which the table had that dataset; None when the log does not reach back so far."""
    table_id = table.entry.table_id
    swaps = [
        entry.version
        for entry in table.store.log(table_id)
        if any(isinstance(update, TableRewritten | TableRestored | TableRebuilt) for update in entry.updates)
    ]
    for swap in reversed(swaps):
        try:
            before = table.store.table(table_id, at=swap - 1)
        except NotFound:
            return None
        if before.dataset == number:
            return before
    return None


def _names_in(dataset: LanceDataset, recorded: TableState) -> tuple[str, ...]:
    """Returns the recorded row keys by the names that their columns had in the dataset: they may be renamed since."""
    row_keys = recorded.properties.row_keys
    if all(name in dataset.schema.names for name in row_keys):
        return row_keys
    ids = field_ids(open_dataset(dataset.uri, recorded.lance_version), row_keys)
    names = {field.id(): field.name() for field in dataset.lance_schema.fields()}
    return tuple(names[each] for each in ids if each in names)
