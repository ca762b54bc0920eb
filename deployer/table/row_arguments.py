"""Checks of the types of arguments for changes of rows. They name the wrong argument before anything is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from deployer.errors import InvalidInput


def check_where(where: object, address: str, *, needed: bool = False) -> None:
    """Raises InvalidInput for a condition that is not a text, and for a missing condition if one is `needed`."""
    if isinstance(where, str) or (where is None and not needed):
        return
    raise InvalidInput(f"the condition is of type {type(where).__name__}", where=address, remedy="give an SQL string")


def check_names(name: str, given: object, address: str) -> None:
    """Raises InvalidInput unless the argument is None, a name or a list of names."""
    if given is None or isinstance(given, str):
        return
    if not isinstance(given, Iterable) or not all(isinstance(each, str) for each in given):
        raise InvalidInput(f"`{name}` is {given!r}", where=address, remedy="give a name, or a list of names")


def check_values(values: object, values_sql: object, address: str) -> None:
    """Raises InvalidInput unless new values are a dict by the names of columns, and unless expressions are texts."""
    for name, given in (("values", values), ("values_sql", values_sql)):
        if given is not None and not (isinstance(given, Mapping) and all(isinstance(each, str) for each in given)):
            raise InvalidInput(f"`{name}` is {given!r}", where=address, remedy="give a dict by the names of columns")
    for column, sql in values_sql.items() if isinstance(values_sql, Mapping) else ():
        if not isinstance(sql, str):
            raise InvalidInput(
                f"the expression of column {column!r} in `values_sql` is {sql!r}",
                where=address,
                remedy="give an SQL string, or give the value in `values`",
            )
