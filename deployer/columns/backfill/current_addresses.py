"""Finds the current addresses of the rows of error records: rows move when files are merged or rows are changed."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from deployer.columns.backfill.failed_rows import ROW_ID, ErrorRecord
from deployer.tables.ingest.keys.sets import KeySet
from deployer.tables.open_table import OpenTable
from deployer.tables.rows.candidates import fragments_for
from deployer.tables.rows.matching import ADDRESS, READ_AT_ONCE

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset


@dataclass(frozen=True, slots=True)
class CurrentAddresses:
    """The addresses of the rows that were found, ascending, and the records of rows that are gone or cannot be
    found."""

    addresses: tuple[int, ...]
    gone: tuple[ErrorRecord, ...]


def current_addresses(table: OpenTable, records: Sequence[ErrorRecord]) -> CurrentAddresses:
    """Returns the addresses of the records' rows in the table's newest version.

    An address is valid as long as its fragment exists. Other rows are found by their stable row ids or their keys;
    rows of a table with neither count as gone.
    """
    dataset = table.dataset()
    present = {each.fragment_id for each in dataset.get_fragments()}
    same = [each for each in records if each.dataset == table.entry.dataset and each.address >> 32 in present]
    found = dict.fromkeys(_alive(dataset, [each.address for each in same]))
    where: dict[int, int] = {each.address: each.address for each in same if each.address in found}
    moved = [each for each in records if each.address not in where]
    where |= _by_row_id(dataset, [each for each in moved if each.row_id is not None])
    where |= _by_key(table, dataset, [each for each in moved if each.row_id is None and each.row_key])
    gone = tuple(each for each in records if each.address not in where)
    return CurrentAddresses(tuple(sorted(set(where.values()))), gone)


def _alive(dataset: LanceDataset, addresses: Sequence[int]) -> list[int]:
    """Returns the addresses whose rows are not deleted. All fragments of `addresses` must exist."""
    ordered = sorted(set(addresses))
    alive: list[int] = []
    for start in range(0, len(ordered), READ_AT_ONCE):
        part = ordered[start : start + READ_AT_ONCE]
        fragments = [dataset.get_fragment(number) for number in sorted({each >> 32 for each in part})]
        rows = dataset.scanner(
            columns=[], filter=f"{ADDRESS} IN ({', '.join(map(str, part))})", fragments=fragments, with_row_address=True
        ).to_table()
        alive += rows[ADDRESS].to_pylist()
    return alive


def _by_row_id(dataset: LanceDataset, records: Sequence[ErrorRecord]) -> dict[int, int]:
    """Returns the current addresses of rows with stable row ids, by their former addresses."""
    if not records or not dataset.has_stable_row_ids:
        return {}
    former = {each.row_id: each.address for each in records}
    found: dict[int, int] = {}
    ids = sorted(each for each in former if each is not None)
    for start in range(0, len(ids), READ_AT_ONCE):
        wanted = ", ".join(map(str, ids[start : start + READ_AT_ONCE]))
        rows = dataset.scanner(
            columns=[], filter=f"{ROW_ID} IN ({wanted})", with_row_address=True, with_row_id=True
        ).to_table()
        found |= {former[i]: a for i, a in zip(rows[ROW_ID].to_pylist(), rows[ADDRESS].to_pylist(), strict=True)}
    return found


def _by_key(table: OpenTable, dataset: LanceDataset, records: Sequence[ErrorRecord]) -> dict[int, int]:
    """Returns the current addresses of rows by their former addresses. A row is found by its keys where one record and
    one current row have them."""
    names = list(table.row_keys)
    usable = [each for each in records if each.row_key is not None and [*each.row_key] == names]
    if not usable:
        return {}
    try:
        columns = [_values([_key(each)[name] for each in usable], table.schema.field(name).type) for name in names]
    except (pa.ArrowException, ValueError, TypeError):
        return {}  # the key columns have another type now
    keys = KeySet(columns)
    first = keys.first_rows()
    repeated = set(np.flatnonzero(np.bincount(keys.codes, minlength=keys.count) > 1).tolist())
    hits: dict[int, list[int]] = {}
    fragments = fragments_for(table, dataset, pa.table(columns, names=names))
    if not fragments:
        return {}
    scanner = dataset.scanner(columns=names, fragments=fragments, with_row_address=True)
    for batch in scanner.to_batches():
        codes, places = keys.matches([batch.column(name) for name in names])
        addresses = batch.column(ADDRESS).to_numpy()[places].tolist()
        for code, address in zip(codes.tolist(), addresses, strict=True):
            hits.setdefault(code, []).append(address)
    return {
        usable[int(first[code])].address: addresses[0]
        for code, addresses in hits.items()
        if len(addresses) == 1 and code not in repeated
    }


def _key(record: ErrorRecord) -> Mapping[str, Any]:
    return record.row_key or {}


def _values(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Returns the values of a key column, decoded from their JSON form in error records."""
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return pa.array([b64decode(each) for each in values], kind)
    if values and isinstance(values[0], str) and not pa.types.is_string(kind):
        return pa.array(list(values), pa.string()).cast(kind)
    return pa.array(list(values), kind)
