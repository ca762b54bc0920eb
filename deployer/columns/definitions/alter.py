"""Changes the names, types, nullability and definitions of columns. A call makes all of its changes or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from deployer.columns.definitions.checked import checked_spec, live_spec
from deployer.columns.definitions.runs import refuse_while_written
from deployer.errors import InvalidInput, Refused
from deployer.plan.assess.holds import hold_refusal
from deployer.plan.diff.lakes import diff_tables
from deployer.platform.sql.planning import NotComputable, plan_expression
from deployer.specs.model import IndexSpec, TableSpec
from deployer.specs.types.arrow import arrow_schema
from deployer.specs.types.computed import ComputedBySql, with_renamed_inputs
from deployer.specs.types.types import Column
from deployer.tables.admin.tables import update_table

if TYPE_CHECKING:
    from deployer.specs.types.computed import Computed
    from deployer.specs.types.types import ColumnType
    from deployer.tables.open_table import OpenTable


@dataclass(frozen=True, slots=True)
class Alteration:
    """The new properties of a column; None leaves a property unchanged. `using` is the SQL that converts values to the
    new type."""

    column: str
    rename: str | None = None
    nullable: bool | None = None
    type: ColumnType | None = None
    using: str | None = None
    computed: Computed | None = None


def alter_columns(table: OpenTable, alterations: Sequence[Alteration]) -> None:
    """Makes the alterations, by the same changes as `up`. Raises as `check_alterations` does; then nothing is
    changed."""
    update_table(table.store, table.root, table.entry.table_id, check_alterations(table, alterations))


def check_alterations(table: OpenTable, alterations: Sequence[Alteration]) -> TableSpec:
    """Returns the table's spec after the alterations.

    Raises InvalidInput for unknown columns and for changes that would be invalid in a spec, Refused where keys or holds
    do not allow a change, and Conflict while a run writes the columns.
    """
    before = live_spec(table)
    after = before
    for each in alterations:
        after = _altered(after, each)
    after = checked_spec(before, after)
    for each in alterations:
        if each.rename is not None and each.rename != each.column:
            _refuse_taken(after, each.rename)
            after = _renamed(after, each.column, each.rename)
    after = checked_spec(before, after)
    refuse_while_written(table, [each.column for each in alterations])
    for change in diff_tables(before, after):
        if refusal := hold_refusal(change, before.holds, has_rows=table.state.files.rows > 0):
            raise Refused(refusal, where=table.address)
    return after


def _refuse_taken(spec: TableSpec, name: object) -> None:
    if not isinstance(name, str):
        raise InvalidInput(f"{name!r} is not a name of a column", where=spec.address, remedy="give a string")
    if any(column.name == name for column in spec.columns):
        raise InvalidInput(f"column {name} exists already", where=spec.address, remedy="use another name")


def _altered(spec: TableSpec, alteration: Alteration) -> TableSpec:
    def altered(column: Column) -> Column:
        if column.name != alteration.column:
            return column
        return replace(
            column,
            nullable=column.nullable if alteration.nullable is None else alteration.nullable,
            type=alteration.type or column.type,
            using=alteration.using,
            computed=alteration.computed or column.computed,
        )

    return replace(spec, columns=tuple(map(altered, spec.columns)))


def _renamed(spec: TableSpec, before: str, after: str) -> TableSpec:
    """Returns the spec with the column renamed in all places that refer to it."""

    def name_of(name: str) -> str:
        return after if name == before else name

    def path_of(path: str) -> str:
        top, dot, rest = path.partition(".")
        return f"{name_of(top)}{dot}{rest}"

    def column_of(column: Column) -> Column:
        computed = column.computed and with_renamed_inputs(column.computed, {before: after})
        if column.name != before:
            return replace(column, computed=computed)
        return replace(column, name=after, renamed_from=before, computed=computed)

    def index_of(index: IndexSpec) -> IndexSpec:
        return replace(index, columns=tuple(map(path_of, index.columns)))

    columns = tuple(map(column_of, spec.columns))
    embedding, retention = spec.embedding, spec.retention
    if embedding is not None:
        embedding = replace(embedding, column=path_of(embedding.column), vector=path_of(embedding.vector))
    if retention is not None:
        retention = replace(retention, column=name_of(retention.column))
    found = replace(
        spec,
        columns=columns,
        row_keys=tuple(map(name_of, spec.row_keys)),
        sort_keys=tuple(map(name_of, spec.sort_keys)),
        indexes=tuple(map(index_of, spec.indexes)),
        embedding=embedding,
        retention=retention,
    )
    _refuse_unclear_names(found, before)
    return found


def _refuse_unclear_names(spec: TableSpec, before: str) -> None:
    """Raises Refused where an SQL expression would read other columns than before the rename."""
    schema = arrow_schema(spec.columns)
    wanted: Mapping[str, ComputedBySql] = {
        each.name: each.computed for each in spec.columns if isinstance(each.computed, ComputedBySql)
    }
    for name, computed in wanted.items():
        try:
            found = plan_expression(computed.sql, schema).columns
        except (NotComputable, ValueError):
            found = ()
        if set(found) != set(computed.inputs):
            what = f"column {before} is an input of {name}, and a new name cannot be written into its expression"
            remedy = f"declare the rename and the new `sql` of {name} in the spec, and run `deployer up`"
            raise Refused(what, where=spec.address, remedy=remedy)
