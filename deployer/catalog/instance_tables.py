"""Creates tables of the instance for clients that give no URL: the server chooses the place."""

from __future__ import annotations

import secrets

import pyarrow as pa

from deployer.catalog.batches import is_index
from deployer.catalog.external.registry import full_name
from deployer.datasets.ordering.key_ranges import fault_of_keys
from deployer.errors import InvalidInput
from deployer.specs.model import TableSpec
from deployer.specs.types.arrow import columns_of
from deployer.specs.types.column_names import name_fault
from deployer.specs.types.lance_support import type_findings
from deployer.state.model.names import fault_of_name
from deployer.state.store import StateStore
from deployer.tables.admin.tables import create_table

#: The beginning of the owner of a table that a client created; no stack owns such a table. The rest of the owner is
#: random for each creation, so that one creation cannot change the table that another made under the same name.
CLIENT = "catalog:"


def create_in_instance(store: StateStore, root: str, name: str, schema: pa.Schema) -> str:
    """Creates a table of the instance and returns its id. Its index columns become its row keys.

    Raises InvalidInput for a name or columns that no table can have, and Conflict where the name is taken.
    """
    return create_table(store, root, spec_of(name, schema), f"{CLIENT}{secrets.token_hex(8)}")


def spec_of(name: str, schema: pa.Schema) -> TableSpec:
    """Returns the spec of the table that a client requests. Raises InvalidInput for an invalid name or columns that a
    table cannot have."""
    database, _, bare = full_name(name).rpartition(".")
    for part in (database, bare):
        if fault := fault_of_name(part):
            raise InvalidInput(f"{part[:80]!r} {fault}", where=name[:80], remedy="name it `database.table`")
    keys = tuple(field.name for field in schema if is_index(field))
    columns = columns_of(
        pa.schema([pa.field(field.name, field.type, field.nullable and not is_index(field)) for field in schema])
    )
    if not columns:
        raise InvalidInput("a table needs a column", where=name, remedy="send a schema with one")
    for column in columns:
        if (wrong := name_fault(column.name)) is not None:
            raise InvalidInput(wrong.what, where=name, remedy=wrong.remedy)
        for finding in type_findings(column):
            raise InvalidInput(finding.what, where=name, remedy=finding.remedy)
    if fault := fault_of_keys(columns, keys):
        raise InvalidInput(f"the index columns cannot be row keys: {fault}", where=name, remedy="choose other columns")
    return TableSpec(database, bare, columns, keys)
