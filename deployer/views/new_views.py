"""Creates materialized views from the unchecked arguments of `create_materialized_view`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence

from deployer.errors import InvalidInput
from deployer.functions.model import UDF
from deployer.functions.packages.package import pack, read_package
from deployer.functions.packages.stored import save_function
from deployer.platform.isolation.trusted_functions import TrustedFunctions
from deployer.platform.system.processes import local_user
from deployer.state.store import StateStore
from deployer.tables.open_table import OpenTable
from deployer.views.definition import ViewDefinition
from deployer.views.refresh.create import NewView, check_view, create_view
from deployer.views.refresh.engine import queries_of


def create(
    store: StateStore,
    root: str,
    trusted: TrustedFunctions,
    name: str,
    query: str,
    udfs: Mapping[str, UDF] | None,
    row_keys: Sequence[str] | None,
    max_staleness: dt.timedelta | None,
    description: str,
) -> OpenTable:
    """Creates the view for `Connection.create_materialized_view`. The packages of its functions are stored after all
    other checks."""
    _check_types(name, query, udfs, row_keys, max_staleness)
    database, dot, short = name.rpartition(".")
    packed = {each: pack(function) for each, function in (udfs or {}).items()}
    hashes = {each: package.hash for each, package in packed.items()}
    most = None if max_staleness is None else round(max_staleness / dt.timedelta(milliseconds=1))
    keys = None if row_keys is None else tuple(row_keys)
    definition = ViewDefinition(query, hashes, most)
    view = NewView(database if dot else "default", short, definition, keys, description=description)
    unsaved = {package.hash: read_package(package.bytes) for package in packed.values()}
    check_view(store, root, view, queries_of(root, trusted, unsaved))
    for function in (udfs or {}).values():
        save_function(root, function, local_user())
    return create_view(store, root, view, queries_of(root, trusted))


def _check_types(name: object, query: object, udfs: object, row_keys: object, max_staleness: object) -> None:
    where = "create_materialized_view"
    for argument, value in (("name", name), ("query", query)):
        if not isinstance(value, str):
            raise InvalidInput(f"`{argument}` is {value!r}, which is not a string", where=where, remedy="give a string")
    for function, given in udfs.items() if isinstance(udfs, Mapping) else ():
        if not isinstance(given, UDF):
            what = f"the function {function} is {type(given).__name__}, which is not a UDF"
            raise InvalidInput(what, where=where, remedy="make it one with `deployer.table.udf`")
    if udfs is not None and not isinstance(udfs, Mapping):
        what = "`udfs` is not a mapping of names to functions"
        raise InvalidInput(what, where=where, remedy='give them by their names in the query: {"embed": embed}')
    if row_keys is not None and (isinstance(row_keys, str) or not isinstance(row_keys, Sequence)):
        what = f"`row_keys` is {row_keys!r}, which is not a list of columns"
        raise InvalidInput(what, where=where, remedy='give a list such as ["id"]')
    if max_staleness is not None and not isinstance(max_staleness, dt.timedelta):
        what = f"`max_staleness` is {max_staleness!r}, which is not a timedelta"
        raise InvalidInput(what, where=where, remedy="give a time such as timedelta(hours=1)")
