"""Drops columns that nothing else of the table needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from deployer.columns.definitions.checked import checked_spec, live_spec
from deployer.columns.definitions.runs import refuse_while_written
from deployer.errors import InvalidInput, Refused
from deployer.plan import changes as c
from deployer.plan.assess.holds import hold_refusal
from deployer.specs.types.column_names import listed
from deployer.specs.yaml.suggestions import nearest
from deployer.tables.admin.tables import update_table

if TYPE_CHECKING:
    from deployer.specs.model import TableSpec
    from deployer.tables.open_table import OpenTable


def drop_columns(table: OpenTable, names: Sequence[str]) -> None:
    """Drops columns, and the indexes on them.

    Raises InvalidInput for unknown columns, Conflict while a run writes the columns, and Refused for columns that a
    key, a computed column, the retention, the embedding or a legal hold needs.
    """
    before = live_spec(table)
    for name in names:
        known_column(before, name)
    if not names:
        raise InvalidInput("no columns are named", where=table.address, remedy="name at least one")
    _refuse_needed(before, names)
    refuse_while_written(table, names)
    kept = tuple(column for column in before.columns if column.name not in names)
    indexes = tuple(each for each in before.indexes if not _tops(each.columns) & {*names})
    after = checked_spec(before, replace(before, columns=kept, indexes=indexes))
    update_table(table.store, table.root, table.entry.table_id, after)


def known_column(spec: TableSpec, name: object) -> str:
    """Returns the name of a column of the table. Raises InvalidInput, with the nearest name, for an unknown one."""
    columns = [column.name for column in spec.columns]
    if isinstance(name, str) and name in columns:
        return name
    near = nearest(name, columns)
    remedy = f"did you mean {near}?" if near else f"its columns are {listed(columns)}"
    raise InvalidInput(f"the table has no column {name!r}", where=spec.address, remedy=remedy)


def _refuse_needed(spec: TableSpec, names: Sequence[str]) -> None:
    for name in names:
        readers = [
            column.name
            for column in spec.columns
            if column.computed and name in column.computed.inputs and column.name not in names
        ]
        if readers:
            what = f"column {name} is an input of {listed(readers)}, which {_is(readers)} computed from it"
            remedy = f"drop {listed(readers)} too, or compute {'it' if len(readers) == 1 else 'them'} in another way"
            raise Refused(what, where=spec.address, remedy=remedy)
        for what, keys in (("row key", spec.row_keys), ("sort key", spec.sort_keys)):
            if name in keys:
                remedy = f"change the {what}s in the spec first"
                raise Refused(f"column {name} is a {what}", where=spec.address, remedy=remedy)
        if spec.retention is not None and spec.retention.column == name:
            raise Refused(f"rows expire by column {name}", where=spec.address, remedy="change `retention:` first")
        if spec.embedding is not None and name in _tops((spec.embedding.column, spec.embedding.vector)):
            what = f"the embedding function uses column {name}"
            raise Refused(what, where=spec.address, remedy="change `embedding:` first")
        if refusal := hold_refusal(c.DropColumn(spec.address, (name,)), spec.holds):
            raise Refused(refusal, where=spec.address)


def _is(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _tops(paths: Sequence[str]) -> set[str]:
    return {path.partition(".")[0] for path in paths}
