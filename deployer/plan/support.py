"""Which changes this release plans but does not apply yet, each refused by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from deployer.errors import Refused
from deployer.graph.build import Spec
from deployer.plan import changes as c
from deployer.specs.model import TableSpec
from deployer.specs.types import format_type

_NO_KEYS: Mapping[str, str] = MappingProxyType({})
_NAMES: dict[type, str] = {
    c.ChangeRoot: "move an instance's root",
    c.ChangeStateBackend: "move an instance's state store",
}


def refusal(change: c.Change, keys: Mapping[str, str] = _NO_KEYS) -> str | None:
    """Why `change` cannot be applied by this release, None when it can. `keys` are those of both specs."""
    match change:
        case c.AddColumn(column=path, definition=column) if not column.nullable and not (
            column.default and len(path) == 1
        ):
            return "existing rows have no value for it: give it a `default:`, or add it nullable and fill it"
        case c.WidenColumn(column=(name,)) if keys.get(name) == "row key":
            return f"column {name} is a row key, by which rows are placed: give the table other row keys first"
        case c.ConvertColumn(column=(name,)) if name in keys:
            return f"column {name} is a {keys[name]}: give the table other keys first"
        case c.ConvertColumn(column=(_,), after=after, using=None):
            return f"values may be lost: say with `using:`, a SQL expression, how they become {format_type(after)}"
        case c.ConvertColumn(column=path) if len(path) > 1:
            return f"not yet: convert a field inside a nested column; add it to {path[0]} under another name"
    later = _NAMES.get(type(change))
    return f"not yet: {later}" if later else None


def keys_of(*specs: Spec | None) -> dict[str, str]:
    """The columns that are a `row key` or else a `sort key` in any of these specs."""
    tables = [spec for spec in specs if isinstance(spec, TableSpec)]
    sort_keys = {key: "sort key" for table in tables for key in table.sort_keys}
    return sort_keys | {key: "row key" for table in tables for key in table.row_keys}


def refuse_unsupported(changes: Iterable[c.Change], keys: Mapping[str, str] = _NO_KEYS) -> None:
    """Raise Refused that names every change which this release cannot apply."""
    refused = [(change.address, why) for change in changes if (why := refusal(change, keys))]
    if refused:
        raise Refused("; ".join(why for _, why in refused), where=refused[0][0], remedy="undo it in the specs")
