"""Hypothesis strategies of types and columns that tables can have."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from deployer.specs.types.names import MAX_BINARY_SIZE, MAX_PRECISION, PLAIN, UNITS_OF
from deployer.specs.types.types import (
    Blob,
    Column,
    ColumnType,
    Dictionary,
    FixedSizeList,
    ListOf,
    MapOf,
    Scalar,
    Struct,
)

identifiers = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,8}", fullmatch=True)
any_names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
descriptions = st.text(st.characters(exclude_categories=["Cs"]), max_size=12).map(str.strip)
zones = st.sampled_from(["UTC", "America/New_York", "Asia/Kolkata", "Etc/GMT+5", "+05:30"])


def _timed(name: str) -> st.SearchStrategy[Scalar]:
    units = st.sampled_from(UNITS_OF[name])
    plain = units.map(lambda unit: Scalar(name, (unit,)))
    if name != "timestamp":
        return plain
    return plain | st.tuples(units, zones).map(lambda args: Scalar(name, args))


def _decimal(name: str) -> st.SearchStrategy[Scalar]:
    return st.integers(1, MAX_PRECISION[name]).flatmap(
        lambda precision: st.integers(-precision, precision).map(lambda scale: Scalar(name, (precision, scale)))
    )


NULL = Scalar("null")
plain_scalars = st.sampled_from(PLAIN).map(Scalar)
scalars = st.one_of(
    plain_scalars,
    st.integers(1, MAX_BINARY_SIZE).map(lambda size: Scalar("fixed_size_binary", (size,))),
    *(_timed(name) for name in UNITS_OF),
    *(_decimal(name) for name in MAX_PRECISION),
)
integers = st.sampled_from(["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]).map(Scalar)
dictionaries = st.builds(Dictionary, integers, st.sampled_from(["string", "large_binary", "int64", "bool"]).map(Scalar))


def columns(
    names: st.SearchStrategy[str], types: st.SearchStrategy[ColumnType], described: bool
) -> st.SearchStrategy[Column]:
    found = st.builds(Column, names, types, st.booleans(), descriptions if described else st.just(""))
    return found.map(lambda column: replace(column, nullable=True) if column.type == NULL else column)


def types(described: bool = False, names: st.SearchStrategy[str] = identifiers) -> st.SearchStrategy[ColumnType]:
    """Any type; with descriptions of nested fields only when `described`."""

    def nested(inner: st.SearchStrategy[ColumnType]) -> st.SearchStrategy[ColumnType]:
        def child(name: str) -> st.SearchStrategy[Column]:
            return columns(st.just(name), inner, described)

        keys = (
            child("key")
            .filter(lambda key: key.type != NULL)
            .map(lambda key: Column("key", key.type, False, key.description))
        )
        fields = st.lists(columns(names, inner, described), min_size=1, max_size=3, unique_by=lambda field: field.name)
        return st.one_of(
            st.builds(ListOf, child("item"), st.booleans()),
            st.builds(FixedSizeList, child("item"), st.integers(1, 2000)),
            fields.map(lambda found: Struct(tuple(found))),
            st.builds(MapOf, keys, child("value")),
        )

    return st.recursive(scalars | dictionaries | st.just(Blob()), nested, max_leaves=6)


def tables_of(described: bool = True) -> st.SearchStrategy[tuple[Column, ...]]:
    """The columns of a table; where `described`, some have other names in files."""
    column = columns(identifiers, types(described), described)
    if described:
        sources = st.none() | any_names | st.just("")
        column = st.builds(lambda found, source: replace(found, source=source), column, sources)
    return st.lists(column, min_size=1, max_size=4, unique_by=lambda c: c.name).map(tuple)
