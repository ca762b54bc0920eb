"""Which changes this release plans but does not apply yet, each refused by name."""

from __future__ import annotations

from collections.abc import Iterable

from deployer.errors import Refused
from deployer.plan import changes as c

_NAMES: dict[type, str] = {
    c.RenameTable: "rename a table",
    c.DropColumn: "drop a column",
    c.RenameColumn: "rename a column",
    c.WidenColumn: "widen a column's type",
    c.ConvertColumn: "convert a column's type",
    c.RelaxNullability: "make a column nullable",
    c.TightenNullability: "make a column not nullable",
    c.ChangeRowKeys: "change row keys",
    c.ChangeSortKeys: "change sort keys",
    c.ChangeSplitPoints: "change split points",
    c.ChangeStorage: "change storage options",
    c.ChangeRoot: "move an instance's root",
    c.ChangeStateBackend: "move an instance's state store",
}


def refusal(change: c.Change) -> str | None:
    """Why `change` cannot be applied by this release, None when it can."""
    if isinstance(change, c.AddColumn):
        if len(change.column) > 1:
            return "not yet: add a field inside a nested column"
        if not change.definition.nullable:
            return "not yet: add a column that is never null"
    if isinstance(change, c.ReorderColumns) and change.column:
        return "not yet: reorder the fields of a nested column"
    name = _NAMES.get(type(change))
    return f"not yet: {name}" if name else None


def refuse_unsupported(changes: Iterable[c.Change]) -> None:
    """Raise Refused that names every change which this release cannot apply."""
    refused = [(change.address, why) for change in changes if (why := refusal(change))]
    if refused:
        raise Refused("; ".join(why for _, why in refused), where=refused[0][0], remedy="undo it in the specs")
