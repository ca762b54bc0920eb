"""Lineage: the source columns of a view's columns, and the indexes on these, from the view's spec."""

from __future__ import annotations

from deployer.specs.model import TableSpec


def lineage(view: TableSpec, source: str) -> tuple[str, ...]:
    """Returns a line for each column of the view that is computed from columns of the table `source` (a full name).

    A line has these columns, then the view's column, then the indexes on it, such as `delay, distance → speed →
    speed_btree`. The result is empty if the view's query could not be planned from specs.
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
