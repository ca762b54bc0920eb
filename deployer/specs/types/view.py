"""The definition of a materialized view: a query over other tables, whose rows a refresh brings up to date.

The state keeps the definition in the declaration of the view's table, in the form that `deployer.views` reads.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from deployer.errors import InvalidInput
from deployer.platform.sql.select import NotOneSelect, canonical_select, named_tables
from deployer.platform.text.units import STALENESS_DURATION, parse_duration
from deployer.platform.text.visible import shortened

JSON = Any
HIDDEN = "__"  #: the beginning of the names of the columns that a view keeps for its refreshes
_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000))
FUNCTION_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")  #: the name of a function
_SOURCE = re.compile(r"[0-9a-f]{16,128}")


@dataclass(frozen=True, slots=True)
class ViewFunction:
    """A function that a view's query calls. `source` is the hash of its package below the root. `returns` is the text
    of the type of its values, empty where the type is not declared."""

    source: str
    returns: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class ViewSpec:
    """The query of a view, its functions by their names in the query, and the largest staleness, in milliseconds.

    `reads` has the columns that the query reads, by the full names of its tables. `lineage` has, for each column of the
    view, the columns of tables from which it is made. Both are known only for declared views.
    """

    query: str
    functions: Mapping[str, ViewFunction] = field(default_factory=dict)
    max_staleness: int | None = None
    reads: Mapping[str, tuple[str, ...]] = field(default_factory=dict, compare=False)
    lineage: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict, compare=False)

    @property
    def tables(self) -> tuple[str, ...]:
        """The full names of the tables that the query reads."""
        try:
            return named_tables(self.query).full
        except NotOneSelect:
            return ()

    def makes_the_rows_of(self, other: ViewSpec) -> bool:
        """Returns whether both views have the same rows: their functions are equal, and their queries differ at most in
        how they are written."""
        if dict(self.functions) != dict(other.functions):
            return False
        return self.query == other.query or canonical_select(self.query) == canonical_select(other.query)


def staleness_text(milliseconds: int) -> str:
    """Returns a time in the form of specs: `1h`, `90s`, `1500ms`."""
    for unit, size in _UNITS:
        if milliseconds and not milliseconds % size:
            return f"{milliseconds // size}{unit}"
    return f"{milliseconds}ms"


def staleness_of(text: str) -> int:
    """Returns a time in milliseconds. Raises InvalidInput for a text that is not a time."""
    return parse_duration(text, STALENESS_DURATION) // timedelta(milliseconds=1)


def view_to_stored(view: ViewSpec) -> dict[str, JSON]:
    """Returns the definition in the form of the state."""
    functions = {name: each.source for name, each in sorted(view.functions.items())}
    form: dict[str, JSON] = {"query": view.query, "functions": functions, "max_staleness": view.max_staleness}
    if returns := {name: each.returns for name, each in sorted(view.functions.items()) if each.returns}:
        form["returns"] = returns
    return form


def view_from_stored(form: JSON) -> ViewSpec | None:
    """Returns the definition from the form that `view_to_stored` returns; None for None. Raises InvalidInput for an
    invalid form."""
    if form is None:
        return None
    match form:
        case {"query": str(query), "functions": Mapping() as functions, "max_staleness": int() | None as most}:
            types = form.get("returns", {})
            returns = types if isinstance(types, Mapping) else {}
            found = {
                str(name): _function(name, {"source": each, "returns": returns.get(name, "")})
                for name, each in functions.items()
            }
            return ViewSpec(query, found, most)
    raise InvalidInput("the definition of the view cannot be read")


def view_to_json(view: ViewSpec) -> dict[str, JSON]:
    """Returns the definition as an input of Pulumi. Omits empty values."""
    functions = {
        name: {"source": each.source} | ({"returns": each.returns} if each.returns else {})
        for name, each in sorted(view.functions.items())
    }
    form: dict[str, JSON] = {"query": view.query}
    if functions:
        form["functions"] = functions
    if view.max_staleness is not None:
        form["max_staleness"] = staleness_text(view.max_staleness)
    return form


def view_from_json(form: Mapping[str, JSON]) -> ViewSpec | None:
    """Returns the definition from the form that `view_to_json` returns; None for an empty form. Raises InvalidInput for
    an invalid form."""
    if not form:
        return None
    query, functions, most = form.get("query"), form.get("functions", {}), form.get("max_staleness")
    if not isinstance(query, str) or not isinstance(functions, Mapping):
        raise InvalidInput("`view` is not a query with its functions")
    if most is not None and not isinstance(most, str):
        raise InvalidInput("`max_staleness` of `view` is not a time")
    found = {str(name): _function(name, each) for name, each in functions.items()}
    return ViewSpec(query, found, None if most is None else staleness_of(most))


def _function(name: object, form: JSON) -> ViewFunction:
    source, returns = (form.get("source"), form.get("returns", "")) if isinstance(form, Mapping) else (None, "")
    if not isinstance(source, str) or not _SOURCE.fullmatch(source) or not isinstance(returns, str):
        raise InvalidInput(f"the function {shortened(str(name), 80)} of the view cannot be read")
    return ViewFunction(source, returns)


def view_document(view: ViewSpec) -> dict[str, JSON]:
    """Returns the properties of a View document that define its rows, in the form of specs."""
    form: dict[str, JSON] = {"query": view.query}
    if view.functions:
        form["functions"] = {name: _function_document(each) for name, each in sorted(view.functions.items())}
    if view.max_staleness is not None:
        form["max_staleness"] = staleness_text(view.max_staleness)
    return form


def _function_document(function: ViewFunction) -> dict[str, JSON]:
    return {"function": function.source} | ({"returns": function.returns} if function.returns else {})
