"""The field of a file that fills each column of the table.

A field fills the column that `--rename` gives it to, else the column that has it as its `source:`, else the column of
its own name. A column that `--select` gives is not filled by a field.
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
    """`columns` are the table's columns by the names of the fields that fill them; without any, each field fills the
    column of its own name. `selects` are the columns that expressions give, `renamed` the fields that are renamed."""

    columns: Mapping[str, str] = field(default_factory=dict)
    selects: tuple[Select, ...] = ()
    renamed: tuple[str, ...] = ()

    @property
    def is_trivial(self) -> bool:
        """Returns whether files are read as if there were no names other than the columns' own."""
        return not self.columns and not self.selects

    def column_of(self, name: str) -> str | None:
        """Returns the column that a field of this name fills, whether or not the table has it; None: an expression
        gives it."""
        if self.columns:
            return self.columns.get(name, None if name in self.selected else name)
        return name

    @property
    def selected(self) -> frozenset[str]:
        """The columns that expressions give."""
        return frozenset(select.column for select in self.selects)

    @property
    def mentioned(self) -> frozenset[str]:
        """The names that expressions may mean: fields among them are read."""
        return frozenset(name for select in self.selects for name in select.names)

    def fields_of(self, column: str) -> list[str]:
        """Returns the names of fields that fill a column, the column's own name last."""
        if not self.columns:
            return [column]
        found = [name for name, filled in self.columns.items() if filled == column]
        return sorted(found, key=lambda name: name == column)

    def name_in_files(self, column: str) -> str:
        """Returns a name with which a file has the column: its own, unless that is the name of another column's
        field."""
        found = self.fields_of(column)
        return column if column in found or not found else found[0]

    def as_in_files(self, table: pa.Schema) -> pa.Schema:
        """Returns the table's columns under each of the names that their fields may have."""
        if not self.columns:
            return table
        pairs = ((name, column) for name, column in self.columns.items() if column in table.names)
        return pa.schema([table.field(column).with_name(name) for name, column in pairs])


def field_map(table: pa.Schema, renames: Sequence[tuple[str, str]] = (), selects: Sequence[Select] = ()) -> FieldMap:
    """Returns the fields that fill the table's columns. `renames` are pairs of a field and a column.

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
    """Returns the field and the column of an option `OLD=NEW`. The last `=` parts them. Raises InvalidInput."""
    old, sign, new = text.rpartition("=")
    if not sign or not new:
        raise InvalidInput(
            f"--rename {text!r} does not name a field of the files and a column",
            remedy="write FIELD=COLUMN, such as --rename 'Total Amount=total_amount'",
        )
    return old, new


def check_given_once(renames: Sequence[tuple[str, str]], selects: Sequence[Select]) -> None:
    """Raises InvalidInput for a field or a column that several of the options are for."""
    fields = [old for old, _ in renames]
    columns = [new for _, new in renames] + [select.column for select in selects]
    for what, names in (("field", fields), ("column", columns)):
        if repeated := next((name for name in names if names.count(name) > 1), None):
            raise InvalidInput(
                f"--rename or --select is given twice for {what} {repeated!r}", remedy="give one of them"
            )


def check_one_field_each(names: Iterable[str], fields: FieldMap, where: str) -> None:
    """Raises InvalidInput when two fields of a file fill the same column."""
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
    """Returns a column as messages name it: with the name of its field where that is another one."""
    return f"column {column!r}" if name is None or name == column else f"column {column!r} (source {name!r})"
