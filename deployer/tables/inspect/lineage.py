"""The columns of tables that the columns of a view are made of, by its current query."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from deployer.errors import DeployerError
from deployer.platform.sql.select import NotOneSelect, NotPlanned, plan_select
from deployer.specs.types.arrow import arrow_type, stored_schema
from deployer.specs.types.parser import parse_type
from deployer.specs.types.view import HIDDEN, ViewSpec
from deployer.state.reader import StateReader
from deployer.tables.open_table import find_entry


def view_lineage(store: StateReader, view: ViewSpec) -> Mapping[str, tuple[tuple[str, str], ...]] | None:
    """Returns the sources of each column of a view, as pairs of a table's full name and a column of it; None where the
    query does not fit its tables now."""
    try:
        return plan_select(view.query, _source_schemas(store, view), _return_types(view)).lineage
    except (DeployerError, NotOneSelect, NotPlanned, StopIteration):
        return None


def _source_schemas(store: StateReader, view: ViewSpec) -> dict[str, pa.Schema]:
    schemas = {}
    for name in view.tables:
        entry = find_entry(store.instance().tables.values(), name)
        own = stored_schema(store.table(entry.table_id).schema, name)
        schemas[name] = pa.schema([field for field in own if not field.name.startswith(HIDDEN)])
    return schemas


def _return_types(view: ViewSpec) -> dict[str, pa.DataType]:
    """Returns the types that functions return; of those that do not say it, any type shows what is read."""
    return {
        name: arrow_type(parse_type(each.returns)) if each.returns else pa.string()
        for name, each in view.functions.items()
    }
