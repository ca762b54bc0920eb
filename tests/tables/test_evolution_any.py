"""Any lists of columns, with rows in between: applying the plan gives the second, and keeps what it says it keeps."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deployer.specs.model import Storage
from deployer.specs.types import Column, ListOf, Scalar, Struct
from tests.tables.test_evolution import Evolving

ID = Column("id", Scalar("int64"), nullable=False)
WIDTHS = ("int16", "int32", "int64")  # a name has one family of types, so that rows can be made to fit both sides
NAMES = ("a", "b", "c", "d")


def leaves(names: tuple[str, ...]) -> st.SearchStrategy[tuple[Column, ...]]:
    one = st.builds(
        Column, st.sampled_from(names), st.sampled_from(WIDTHS).map(Scalar), description=st.sampled_from(["", "text"])
    )
    return st.lists(one, min_size=1, max_size=3, unique_by=lambda column: column.name).map(tuple)


STRUCTS = st.builds(Column, st.just("s"), leaves(("x", "y", "z")).map(Struct))
LISTS = st.builds(Column, st.just("l"), leaves(("x", "y")).map(lambda fields: ListOf(Column("item", Struct(fields)))))


@st.composite
def columns(draw: st.DrawFn) -> tuple[Column, ...]:
    found = [ID, *draw(leaves(NAMES)), *draw(st.lists(STRUCTS, max_size=1)), *draw(st.lists(LISTS, max_size=1))]
    return tuple(draw(st.permutations(found)))


def widened(before: tuple[Column, ...], after: tuple[Column, ...]) -> tuple[Column, ...]:
    """The columns after, where a type that both have is no narrower than it was."""
    types = {column.name: column.type for column in before}
    return tuple(
        Column(
            column.name,
            _wider(types[column.name], column.type) if column.name in types else column.type,
            column.nullable,
            column.description,
        )
        for column in after
    )


def _wider(before: Any, after: Any) -> Any:
    match before, after:
        case Struct(old), Struct(new):
            return Struct(widened(old, new))
        case ListOf(old), ListOf(new):
            return ListOf(Column("item", _wider(old.type, new.type)))
        case _:
            return max(before, after, key=lambda scalar: WIDTHS.index(scalar.name))


def value(kind: Any, seed: int) -> Any:
    match kind:
        case Struct(fields):
            return None if seed % 4 == 3 else {field.name: value(field.type, seed + 1) for field in fields}
        case ListOf(item):
            return [value(item.type, seed + place) for place in range(seed % 3)]
        case _:
            return None if seed % 5 == 4 else seed


def kept(before: Any, after: Any, was: Any) -> Any:
    """The value as the columns after have it: fields of a name are kept, others are null."""
    match before, after:
        case _ if was is None:
            return None
        case Struct(old), Struct(new):
            types = {field.name: field.type for field in old}
            return {
                field.name: kept(types[field.name], field.type, was[field.name]) if field.name in types else None
                for field in new
            }
        case ListOf(old), ListOf(new):
            return [kept(old.type, new.type, item) for item in was]
        case _:
            return was


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(columns(), columns(), columns(), st.sampled_from(["2.1", "2.2"]), st.booleans())
def test_the_plan_gives_the_second_and_keeps_the_rows(
    first: tuple[Column, ...], second: tuple[Column, ...], third: tuple[Column, ...], version: str, stable: bool
) -> None:
    second = widened(first, second)
    third = widened(second, third)
    with tempfile.TemporaryDirectory() as folder:
        table = Evolving(Path(folder), first, storage=Storage(version, stable_row_ids=stable))
        rows: list[dict[str, Any]] = []
        before = first
        for step, after in enumerate((first, second, third)):
            if step:
                table.change(columns=after)  # checks that a second preview is empty
            whole, target = Struct(before), Struct(after)
            rows = [kept(whole, target, row) for row in rows]
            added = [
                {column.name: value(column.type, 10 * step + n) for column in after} | {"id": 100 * step + n}
                for n in range(5)
            ]
            table.append(added)
            rows += added
            before = after
            assert table.rows() == rows
            assert table.dataset.schema.names == [column.name for column in after]
