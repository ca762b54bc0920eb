"""Names of columns for data that no spec declares yet: names that columns can have, for those in files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from deployer.errors import InvalidInput
from deployer.specs.types.column_names import is_source, legal_names


def legal_columns(tables: Sequence[pa.Table]) -> dict[str, str]:
    """A name that a column can have for each name of a column in the tables, itself where it can.

    Raises InvalidInput for another name that no spec can have as `source:`.
    """
    legal = legal_names(list(dict.fromkeys(name for table in tables for name in table.schema.names)))
    for old, new in legal.items():
        if new != old and not is_source(old):
            raise InvalidInput(f"the data has a column {old!r}, which no spec can name", remedy="rename it in the data")
    return legal


def with_names(table: pa.Table, legal: Mapping[str, str]) -> pa.Table:
    """The table with the names of `legal`."""
    return table.rename_columns([legal[name] for name in table.schema.names])


def as_in_files(columns: pa.Schema, originals: Mapping[str, str]) -> pa.Schema:
    """The columns with the names that the files have, which are in `originals` where they are other ones."""
    return pa.schema([field.with_name(originals.get(field.name, field.name)) for field in columns])
