"""Builds the indexes that LanceDB's calls request: the number of parts, and the place of the build."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from deployer.errors import InvalidInput
from deployer.runs.rewriting.executor import in_driver
from deployer.runs.rewriting.index_builds import declared_session, declared_there, session_of
from deployer.specs.schema.index_kinds import parameter_names
from deployer.specs.types.arrow import columns_of
from deployer.tables.layout.indexes.arguments import (
    SCALAR_TYPES,
    VECTOR_TYPES,
    refuse_accelerator,
    requested_index,
    requested_kind,
    text_parameters,
)
from deployer.tables.layout.indexes.create import create_index, require_creatable
from deployer.tables.layout.indexes.parts import BuildPlan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deployer.tables.open_table import OpenTable

VECTOR_COLUMN_NAME = "vector"  #: LanceDB's name of the vector column
_MIB = 1024 * 1024


def create_vector_index(
    table: OpenTable,
    column: str,
    index_type: str,
    parameters: Mapping[str, Any],
    *,
    replaces: bool,
    plan: BuildPlan,
    accelerator: object,
    index_cache_size: int | None,
) -> None:
    """Builds an index on vectors; see `Table.create_index`."""
    kind = requested_kind(index_type, VECTOR_TYPES, table.address)
    refuse_accelerator(accelerator, table.address)
    if index_cache_size is not None:
        what = "index_cache_size has no effect: Lance does not use its cache when it builds an index"
        warnings.warn(what, UserWarning, stacklevel=3)
    own = {name: value for name, value in parameters.items() if _is_of(kind, name)}
    index = requested_index(columns_of(table.schema), column, kind, own, table.address)
    create_index(table, index, replaces=replaces, plan=plan)


def create_scalar_index(table: OpenTable, column: str, index_type: str, *, replaces: bool, plan: BuildPlan) -> None:
    """Builds an index on values; see `Table.create_scalar_index`."""
    kind = requested_kind(index_type, SCALAR_TYPES, table.address)
    index = requested_index(columns_of(table.schema), column, kind, {}, table.address)
    create_index(table, index, replaces=replaces, plan=plan)


def create_text_indexes(
    table: OpenTable,
    fields: str | Sequence[str],
    ordering: str | Sequence[str] | None,
    tokenizer_name: str | None,
    parameters: Mapping[str, Any],
    further: Mapping[str, Any],
    *,
    replaces: bool,
    plan: BuildPlan,
) -> None:
    """Builds an index for full-text search on each of the columns; see `Table.create_fts_index`."""
    columns = columns_of(table.schema)
    names = _names(fields, "field_names", table)
    if not names:
        raise InvalidInput("`field_names` is empty", where=table.address, remedy="name at least one column of text")
    for name in _names(ordering or (), "ordering_field_names", table):
        if name not in {each.name for each in columns}:
            raise InvalidInput(f"there is no column {name!r} to order by", where=table.address, remedy="name another")
    found = text_parameters(tokenizer_name, parameters, further, table.address)
    indexes = [requested_index(columns, name, "inverted", found, table.address) for name in dict.fromkeys(names)]
    for index in indexes:
        require_creatable(table, index, replaces=replaces)
    for index in indexes:
        create_index(table, index, replaces=replaces, plan=plan)
        table = table.refreshed()


def _names(given: str | Sequence[str], what: str, table: OpenTable) -> list[str]:
    names = [given] if isinstance(given, str) else list(given)
    if any(not isinstance(each, str) for each in names):
        raise InvalidInput(f"`{what}` is {given!r}", where=table.address, remedy="give a name, or a list of names")
    return names


def _is_of(kind: str, parameter: str) -> bool:
    """Returns whether a parameter concerns the kind of index. Others are ignored, as in LanceDB, since they have
    defaults."""
    return parameter in parameter_names(kind)


def build_plan(
    table: OpenTable, spark: SparkSession | None, parts: int | None, options: Mapping[str, Any] | None = None
) -> BuildPlan:
    """Returns the plan of a build: the number of parts of the index, and the place of the build.

    With a session `spark`, Spark builds it there. An index of a large table is built on the declared cluster on AWS, or
    else on the declared local one. Otherwise this process builds it, in `parts` parts or one. Raises InvalidInput for
    an invalid `parts`, and Refused where a cluster on AWS is declared and `deployer up` has not published it.
    """
    if parts is not None and (not isinstance(parts, int) or isinstance(parts, bool) or parts < 1):
        raise InvalidInput(f"`parts` is {parts!r}", where=table.address, remedy="give a whole number from 1")
    rows, instance = table.state.files.rows, table.store.instance()
    if spark is None and (there := declared_there(instance, table.root, table.address, rows)) is not None:
        from deployer.compute.running.remote_index import plan_on  # its client of AWS takes 9 MiB of memory

        return plan_on(there, parts, options)
    session = declared_session(instance, rows) if spark is None else session_of(spark)
    if session is None:
        return BuildPlan(parts or 1, in_driver, options or {})
    return session.plan(table.location, rows, parts, options)


def memory_options(writer_heap_size: int | None, table: OpenTable) -> dict[str, int]:
    """Returns Lance's option for the memory of building an index for full-text search, from a number of bytes; none for
    None. Raises InvalidInput for less than 1 MiB."""
    if writer_heap_size is None:
        return {}
    if not isinstance(writer_heap_size, int) or isinstance(writer_heap_size, bool) or writer_heap_size < _MIB:
        what = f"`writer_heap_size` is {writer_heap_size!r}"
        raise InvalidInput(what, where=table.address, remedy=f"give a number of bytes, at least {_MIB:,}")
    return {"memory_limit": writer_heap_size // _MIB}
