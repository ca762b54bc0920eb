"""Creates one index of a table for a program, and replaces the column's existing index.

The new index is recorded like an index that a plan builds, with the author and time in the state log. Specs that do not
declare it then differ from the table, as with a service that is attached by hand.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from deployer.datasets.indexes.read import RememberedIndex, remembered_indexes
from deployer.errors import NotFound, Refused
from deployer.platform.system.progress import OnProgress, no_progress
from deployer.platform.text.formatting import count
from deployer.specs.declarations.indexes import default_name
from deployer.specs.schema.index_kinds import VECTOR_KINDS
from deployer.specs.types.column_names import listed
from deployer.specs.yaml.suggestions import nearest
from deployer.tables.layout.indexes.build import build_index, change_remembered, drop_index, rows_for, rows_needed
from deployer.tables.layout.indexes.listing import IndexConfig, list_indices
from deployer.tables.layout.indexes.parts import IN_ONE_PART, BuildPlan

if TYPE_CHECKING:
    from deployer.specs.model import IndexSpec
    from deployer.tables.open_table import OpenTable


def create_index(
    table: OpenTable,
    index: IndexSpec,
    *,
    replaces: bool,
    plan: BuildPlan = IN_ONE_PART,
    on_progress: OnProgress = no_progress,
) -> IndexSpec:
    """Builds the index and returns it with its name: its own, or the current name of the index that it replaces.

    An index for the same kind of search on the same column is replaced in one commit, so that every version has one of
    them. Raises Refused where such an index exists and `replaces` is false, where another index has the name, and where
    the table has too few rows; Conflict where others keep committing. After an error, the table is unchanged.
    """
    index, replaced = require_creatable(table, index, replaces=replaces)
    table_id = table.entry.table_id
    known = remembered_indexes(table.state.properties).get(index.name)
    try:
        build_index(table.store, table.root, table_id, index, on_progress, replaced=replaced, plan=plan)
    except (Exception, KeyboardInterrupt):
        change_remembered(table.store, table_id, lambda now: _without_begun(now, index, known))
        raise
    return index


def require_creatable(table: OpenTable, index: IndexSpec, *, replaces: bool) -> tuple[IndexSpec, str]:
    """Returns the index with its final name, and the name of the index that it replaces; empty for none.

    Raises Refused for the same reasons as `create_index`.
    """
    index, replaced = _named(table, index, replaces)
    dataset = table.dataset()
    needed, found = rows_needed(index), rows_for(dataset, index)
    if found < needed:
        rows = "rows with a vector" if index.kind in VECTOR_KINDS else "rows"
        raise Refused(
            f"an index of kind {index.kind} with these parameters needs {needed:,} {rows}, and the table has {found:,}",
            where=table.address,
            remedy="add rows first, or declare the index in the specs: it is then built once there are enough",
        )
    return index, replaced


def remove_index(table: OpenTable, name: str) -> None:
    """Drops the index of that name, even if it waits for rows. Raises NotFound, with the nearest name, where it does
    not exist."""
    names = [each.name for each in list_indices(table)]
    if name not in names and name not in remembered_indexes(table.state.properties):
        near = nearest(name, names)
        remedy = f"did you mean {near!r}?" if near else f"its indexes are {listed(names)}" if names else "it has none"
        raise NotFound(f"there is no index {name!r}", where=table.address, remedy=remedy)
    drop_index(table.store, table.root, table.entry.table_id, name)


def _named(table: OpenTable, index: IndexSpec, replaces: bool) -> tuple[IndexSpec, str]:
    existing = {each.name: each for each in list_indices(table)}
    same = [each for each in existing.values() if tuple(each.columns) == index.columns and _is_alike(each, index)]
    if same and not replaces:
        what = f"there is an index {same[0].name} of kind {same[0].kind} on {index.columns[0]} already"
        raise Refused(what, where=table.address, remedy="call again with replace=True, or drop it first")
    if len(same) > 1 and index.name not in {each.name for each in same}:
        what = f"{count(len(same), 'index', 'indexes')} on {index.columns[0]} could be replaced"
        names = listed(each.name for each in same)
        raise Refused(f"{what}: {names}", where=table.address, remedy="drop all of them but one")
    if index.name in {each.name for each in same}:
        return index, index.name
    replaced = same[0] if same else None
    if replaced and replaced.name != default_name(index.columns, replaced.kind):
        return replace(index, name=replaced.name), replaced.name  # a user chose the name
    if (other := existing.get(index.name)) is not None:
        what = f"the name {index.name} is that of an index of kind {other.kind} on {listed(other.columns)}"
        raise Refused(what, where=table.address, remedy="drop or rename that index")
    return index, replaced.name if replaced else ""


def _is_alike(one: IndexConfig, other: IndexSpec) -> bool:
    """Returns whether both indexes serve the same kind of search."""
    return _family(one.kind) == _family(other.kind)


def _family(kind: str) -> str:
    if kind in VECTOR_KINDS:
        return "vectors"
    return "values" if kind in ("btree", "bitmap", "label_list") else kind


def _without_begun(
    now: dict[str, RememberedIndex], index: IndexSpec, known: RememberedIndex | None
) -> dict[str, RememberedIndex]:
    """Returns the records `now`, with the record of a failed build replaced by the one from before the build."""
    found = now.get(index.name)
    if found is None or found.status != "building" or found.index != index:
        return now
    others = {name: each for name, each in now.items() if name != index.name}
    return others if known is None else {**others, index.name: known}
