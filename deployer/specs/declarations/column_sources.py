"""The names that columns have in files (`source:`): which ones a table can have."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from deployer.errors import Position
from deployer.specs.declarations.columns import DeclaredColumn
from deployer.specs.rules import Rule
from deployer.specs.types.column_names import MAX_SOURCE, is_source
from deployer.specs.types.types import Column, children

Report = Callable[[Position, Rule, str, str], None]


def check_sources(columns: Sequence[DeclaredColumn], report: Report) -> None:
    """Reports sources that leave open which column a field of a file fills, and sources that no file has."""
    by_name = {declared.column.name: declared.column for declared in columns}
    first: dict[str, str] = {}
    for declared in columns:
        column = declared.column
        _check_fields(column, column, report)
        source = column.source
        if source is None:
            continue
        at = declared.place_of("source")
        other = by_name.get(source)
        if source in first:
            what = f"columns `{first[source]}` and `{column.name}` have the same source {source!r}"
            report(at, Rule.SOURCE_REPEATED, what, "remove `source:` of one of them")
        elif other is not None and other.source is None and other.name != column.name:
            what = f"the source {source!r} of column `{column.name}` is the name of another column"
            report(at, Rule.SOURCE_OF_ANOTHER, what, f"give column `{other.name}` a `source:` too, or change this one")
        if len(source) <= MAX_SOURCE and not is_source(source):
            what = f"the source {source!r} of column `{column.name}` has a control character"
            report(at, Rule.SOURCE_CHARACTERS, what, "rename the field in the files, and write its new name here")
        first.setdefault(source, column.name)


def _check_fields(column: Column, inside: Column, report: Report) -> None:
    """Fields of structs are found by their own names."""
    for field in children(inside.type):
        if field.source is not None and field.at is not None:
            what = f"`source` of a field inside column `{column.name}`, which only columns can have"
            report(field.at, Rule.SOURCE_OF_A_FIELD, what, "remove it, and give the field the name that files have")
        _check_fields(column, field, report)
