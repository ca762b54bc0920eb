"""Resolves the kind of search of a query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from deployer.errors import InvalidInput
from deployer.search.builder import SearchBuilder
from deployer.search.embedding import embedded
from deployer.search.request import QUERY_TYPES, Kind, Request, unknown_choice
from deployer.search.target import SearchTarget
from deployer.search.texts import read_text, require_positions
from deployer.search.vectors import fitted, read_vector


def search(
    target: SearchTarget,
    query: Any = None,
    vector_column_name: str | None = None,
    query_type: str = "auto",
    ordering_field_name: str | None = None,
    fts_columns: str | Sequence[str] | None = None,
) -> SearchBuilder:
    """Returns a search of the table; `Table.search` describes the arguments.

    Raises InvalidInput for arguments that do not fit the table, Refused for an embedding function that is not trusted.
    """
    kind = _kind(target, query, vector_column_name, query_type)
    if ordering_field_name is not None:
        _check_ordering(target, kind, ordering_field_name)
    request = Request(kind, limit=None) if kind == "scan" else Request(kind, ordering=ordering_field_name)
    if kind in ("fts", "hybrid"):
        names = [fts_columns] if isinstance(fts_columns, str) else fts_columns
        if names is not None and (not isinstance(names, Sequence) or not names):
            raise InvalidInput(
                f"fts_columns are {fts_columns!r}",
                where=target.address,
                remedy="give a list of names, or leave them out",
            )
        request = Request(kind, ordering=ordering_field_name, text_columns=target.text_columns(names))
    elif fts_columns is not None:
        raise InvalidInput(
            f"fts_columns are for full-text searches, and this one is {kind}",
            where=target.address,
            remedy='leave them out, or search with query_type="fts"',
        )
    builder = SearchBuilder(target, request, vector_column_name)
    if vector_column_name is not None and kind != "fts":
        target.vector_size(vector_column_name)
    match kind:
        case "fts":
            text = read_text(query, target.address)
            require_positions(text, request.text_columns, target)
            return SearchBuilder(target, replace(request, text=text))
        case "vector" if isinstance(query, str):
            column = target.vector_column(vector_column_name)
            vector = embedded(read_text(query, target.address), column, target)
            return SearchBuilder(target, replace(request, text=query, vector=vector, vector_column=column))
        case "vector":
            values = read_vector(query, target.address)
            column = target.vector_column(vector_column_name, len(values))
            vector = fitted(values, column, target)
            return SearchBuilder(target, replace(request, vector=vector, vector_column=column))
        case "hybrid" if isinstance(query, str):
            return builder.text(query)
        case "hybrid" if query is not None:
            return builder.vector(query)
        case _:
            return builder


def _kind(target: SearchTarget, query: Any, vector_column: str | None, query_type: str) -> Kind:
    match query_type:
        case "auto" if query is None:
            return "scan"
        case "auto" if isinstance(query, str):
            return "vector" if vector_column is not None or target.embedding is not None else "fts"
        case "auto":
            return "vector"
        case "hybrid":
            return "hybrid"
        case "vector" | "fts":
            if query is None:
                wanted = "a vector" if query_type == "vector" else "a text"
                raise InvalidInput("there is no query", where=target.address, remedy=f"give {wanted}")
            return query_type
        case _:
            raise unknown_choice("query_type", query_type, QUERY_TYPES, target.address)


def _check_ordering(target: SearchTarget, kind: Kind, name: str) -> None:
    if kind != "fts":
        raise InvalidInput(
            f"ordering_field_name is for full-text searches, and this one is {kind}",
            where=target.address,
            remedy='leave it out, or search with query_type="fts"',
        )
    target.require_ordered(name)
