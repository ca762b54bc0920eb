"""Lineage: what columns of a view are made of, and the indexes that they go into, from its spec."""

from __future__ import annotations

from deployer.specs.model import TableSpec


def lineage(view: TableSpec, source: str) -> tuple[str, ...]:
    """Returns a line for each column of the view that is made of columns of the table `source`, a full name: first
    these, then the column, then the indexes on it, such as `delay, distance → speed → speed_btree`.

    A view whose query could not be planned from specs has none.
    """
    if view.view is None:
        return ()
    lines = []
    for column in view.columns:
        origins = [name for table, name in view.view.lineage.get(column.name, ()) if table == source]
        if origins:
            indexes = [each.name for each in view.indexes if any(_top(path) == column.name for path in each.columns)]
            parts = (", ".join(origins), column.name, ", ".join(indexes))
            lines.append(" → ".join(part for part in parts if part))
    return tuple(lines)


def _top(path: str) -> str:
    return path.partition(".")[0]
