"""The mapping from the fields of files to the columns of the table.

A field fills the column that `--rename` names for it, else the column that has the field as its `source:`, else the
column with the same name. A column that `--select` computes is not filled by a field.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from deployer.errors import InvalidInput
from deployer.specs.types.arrow import source_of
from deployer.specs.yaml.suggestions import nearest
from deployer.tables.ingest.rows.selects import Select


@dataclass(frozen=True, slots=True)
class FieldMap:
    """The mapping from fields to columns. `columns` has the table's columns by the names of the fields that fill them;
    if it is empty, each field fills the column with the same name. `selects` has the columns that expressions compute,
    `renamed` the fields that are renamed."""

    columns: Mapping[str, str] = field(default_factory=dict)
    selects: tuple[Select, ...] = ()
    renamed: tuple[str, ...] = ()

    @property
    def is_trivial(self) -> bool:
        """Returns whether each field fills the column with the same name, and there are no expressions."""
        return not self.columns and not self.selects

    def column_of(self, name: str) -> str | None:
        """Returns the column that a field of this name fills, whether or not the table has it. Returns None where an
        expression computes the column."""
        if self.columns:
            return self.columns.get(name, None if name in self.selected else name)
        return name

    @property
    def selected(self) -> frozenset[str]:
        """The columns that expressions compute."""
        return frozenset(select.column for select in self.selects)

    @property
    def mentioned(self) -> frozenset[str]:
        """The names in expressions. Fields with these names are read."""
        return frozenset(name for select in self.selects for name in select.names)

    def fields_of(self, column: str) -> list[str]:
        """Returns the names of the fields that fill a column, with the column's own name last."""
        if not self.columns:
            return [column]
        found = [name for name, filled in self.columns.items() if filled == column]
        return sorted(found, key=lambda name: name == column)

    def name_in_files(self, column: str) -> str:
        """Returns a name of the column in files: its own name, unless another name fills the column instead."""
        found = self.fields_of(column)
        return column if column in found or not found else found[0]

    def as_in_files(self, table: pa.Schema) -> pa.Schema:
        """Returns the table's columns, once under each name that their fields may have."""
        if not self.columns:
            return table
        pairs = ((name, column) for name, column in self.columns.items() if column in table.names)
        return pa.schema([table.field(column).with_name(name) for name, column in pairs])


def field_map(table: pa.Schema, renames: Sequence[tuple[str, str]] = (), selects: Sequence[Select] = ()) -> FieldMap:
    """Returns the mapping from fields to the table's columns. `renames` are pairs of a field and a column.

    Raises InvalidInput for renames and selects of columns that the table does not have.
    """
    for option, column in [
        *(("--rename", column) for _, column in renames),
        *(("--select", select.column) for select in selects),
    ]:
        if column not in table.names:
            near = nearest(column, table.names)
            raise InvalidInput(
                f"{option} is for column {column!r}, which the table does not have",
                remedy=f"did you mean {near!r}?" if near else f"its columns are {', '.join(table.names)}",
            )
    sources = {source: each.name for each in table if (source := source_of(each)) is not None}
    if not sources and not renames and not selects:
        return FieldMap()
    given = {select.column for select in selects}
    columns = {name: name for name in table.names if name not in sources} | sources | dict(renames)
    return FieldMap(
        {name: column for name, column in columns.items() if column not in given},
        tuple(selects),
        tuple(old for old, _ in renames),
    )


def rename_of(text: str) -> tuple[str, str]:
    """Returns the field and the column of an option `OLD=NEW`, split at the last `=`. Raises InvalidInput for other
    texts."""
    old, sign, new = text.rpartition("=")
    if not sign or not new:
        raise InvalidInput(
            f"--rename {text!r} does not name a field of the files and a column",
            remedy="write FIELD=COLUMN, such as --rename 'Total Amount=total_amount'",
        )
    return old, new


def check_given_once(renames: Sequence[tuple[str, str]], selects: Sequence[Select]) -> None:
    """Raises InvalidInput where several of the options are for the same field or column."""
    fields = [old for old, _ in renames]
    columns = [new for _, new in renames] + [select.column for select in selects]
    for what, names in (("field", fields), ("column", columns)):
        if repeated := next((name for name in names if names.count(name) > 1), None):
            raise InvalidInput(
                f"--rename or --select is given twice for {what} {repeated!r}", remedy="give one of them"
            )


def check_one_field_each(names: Iterable[str], fields: FieldMap, where: str) -> None:
    """Raises InvalidInput where two fields of a file fill the same column."""
    first: dict[str, str] = {}
    for name in dict.fromkeys(names):
        column = fields.column_of(name)
        if column is None:
            continue
        if column in first:
            raise InvalidInput(
                f"fields {first[column]!r} and {name!r} both fill column {column!r}",
                where=where,
                remedy="leave one of them out of the file, or give one to another column with --rename FIELD=COLUMN",
            )
        first[column] = name


def check_renamed(fields: FieldMap, names: Collection[str]) -> None:
    """Raises InvalidInput for a rename of a field that no file has; `names` are the fields of all files."""
    for old in fields.renamed:
        if old not in names:
            near = nearest(old, sorted(names))
            raise InvalidInput(
                f"--rename {old}={fields.columns[old]}: no file has a field {old!r}",
                remedy=f"did you mean {near!r}?" if near else f"the files have {', '.join(map(repr, sorted(names)))}",
            )


def shown_column(column: str, name: str | None) -> str:
    """Returns the text for a column in messages, with the name of its field where that differs."""
    return f"column {column!r}" if name is None or name == column else f"column {column!r} (source {name!r})"
