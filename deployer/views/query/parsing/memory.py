"""The cache of queries that this process has parsed, for later refreshes of the same view."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from deployer.views.query.model import FunctionSignature, SourceSchema, ViewQuery
from deployer.views.query.parsing.parse import parse_view
from deployer.views.query.parsing.select import SourceSchemas

KEPT = 64  #: the number of queries in the cache


class _ParsedQuery:
    """The last parsed form of a query, with the schemas of its tables at that time."""

    def __init__(self) -> None:
        self.found: tuple[dict[str, SourceSchema], ViewQuery] | None = None


@lru_cache(KEPT)
def _parsed(_query: str, _functions: frozenset[tuple[str, FunctionSignature]]) -> _ParsedQuery:
    return _ParsedQuery()


def parse_again(
    query: str, source_schema: SourceSchemas, functions: Mapping[str, FunctionSignature], where: str
) -> ViewQuery:
    """Returns the result of `parse_view` from the cache where it is known, and raises the errors of `parse_view`.

    Planning each expression takes longer than a small refresh, so the same query over the same columns is parsed once.
    """
    kept = _parsed(query, frozenset(functions.items()))
    if kept.found is not None:
        schemas, found = kept.found
        if all(_same(source_schema(name), schema) for name, schema in schemas.items()):
            return found
    schemas = {}

    def schema_of(name: str) -> SourceSchema:
        schemas[name] = source_schema(name)
        return schemas[name]

    found = parse_view(query, schema_of, functions, where)
    kept.found = schemas, found
    return found


def _same(one: SourceSchema, other: SourceSchema) -> bool:
    return one == other and bool(one.schema.equals(other.schema, check_metadata=True))
