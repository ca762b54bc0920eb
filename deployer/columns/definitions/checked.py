"""Checks a changed declaration of a table in the same way as a spec."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from deployer.errors import InvalidInput
from deployer.live.reader import live_table
from deployer.specs.editing.write import table_document
from deployer.specs.loading.tables import table_of_document
from deployer.specs.model import TableSpec

if TYPE_CHECKING:
    from deployer.specs.types.computed import Computed
    from deployer.specs.types.types import Column
    from deployer.tables.open_table import ReadTable


def live_spec(table: ReadTable) -> TableSpec:
    """Returns the table's present state as a spec."""
    return live_table(table.entry, table.state).spec


def checked_spec(before: TableSpec, after: TableSpec) -> TableSpec:
    """Returns the spec `after` with its missing parts filled in, such as the inputs of SQL.

    Raises InvalidInput with all problems of the spec, except those that `before` has too.
    """
    if after.view is not None:
        raise InvalidInput(
            "the columns of a view are those that its query gives",
            where=after.address,
            remedy="change the view's query and `columns` in the specs, and run `deployer up`",
        )
    known = {problem.what for problem in table_of_document(table_document(before))[1]}
    found, problems = table_of_document(table_document(after))
    new = [problem for problem in problems if problem.what not in known]
    if new:
        remedies = dict.fromkeys(problem.remedy for problem in new)
        what = "; ".join(problem.what.replace("`", "") for problem in new)
        raise InvalidInput(what, where=after.address, remedy="; ".join(remedies).replace("`", ""))
    return after if found is None else replace(after, columns=_resolved(after.columns, found.columns))


def _resolved(columns: Sequence[Column], found: Sequence[Column]) -> tuple[Column, ...]:
    """Returns the columns with their definitions from `found`, and with their kept identities, which `found` lacks."""
    computed: Mapping[str, Computed | None] = {each.name: each.computed for each in found}

    def resolved(column: Column) -> Column:
        read = computed.get(column.name)
        if column.computed is None or read is None:
            return column
        return replace(column, computed=replace(read, kept_identity=column.computed.kept_identity))

    return tuple(map(resolved, columns))
