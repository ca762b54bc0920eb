"""The changes that are planned but never applied, each with the reason and the remedy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from deployer.errors import Refused
from deployer.plan import changes as c
from deployer.plan.graph.build import Spec
from deployer.specs.model import TableSpec
from deployer.specs.types.types import format_type

_NO_KEYS: Mapping[str, str] = MappingProxyType({})
#: the remedy for a changed root or state store
MOVE = "move the lake yourself, as docs/changes.md says (Moving an instance), and run this again"


def refusal(change: c.Change, keys: Mapping[str, str] = _NO_KEYS, *, has_rows: bool = True) -> str | None:
    """Returns why `change` cannot be applied, None when it can.

    `keys` are the columns that order rows before and after (see `kept_keys`); `has_rows`: the table holds some, or may.
    """
    match change:
        case c.AddColumn(column=(_,), definition=column) if has_rows and not column.nullable and not column.default:
            return "existing rows have no value for it: give it a `default:`, or add it nullable and fill it"
        case c.AddColumn(column=(name, _, *_), definition=column) if has_rows and not column.nullable:
            return (
                f"existing rows have no value for it: add it nullable and fill it, or declare with `using:` of column "
                f"{name} how its whole value is made"
            )
        case c.ConvertColumn(column=(name,)) if has_rows and name in keys:
            return (
                f"column {name} is a {keys[name]}, and its rows would change places: add a column of the new type "
                f"whose `default:` makes it from {name}, and let that be the {keys[name]}"
            )
        case c.ConvertColumn(column=(_,), after=after, using=None) if has_rows:
            return f"values may be lost: declare with `using:`, a SQL expression, how they become {format_type(after)}"
        case c.ConvertColumn(column=(name, _, *_)) if has_rows:
            return f"values may be lost: declare with `using:` of column {name}, a SQL expression, its whole new value"
        case c.ChangeViewQuery(before=None):
            return "a table does not become a view: declare the view under another name, and remove the table"
        case c.ChangeViewQuery(after=None):
            return "a view does not become a table: declare the table under another name, and remove the view"
        case c.ChangeRoot(found=False):
            return f"deployer does not move data: {MOVE}"
        case c.ChangeStateBackend(found=False):
            return f"deployer does not move state: {MOVE}"
    return None


def kept_keys(before: Spec | None, after: Spec | None) -> dict[str, str]:
    """Returns the columns by which rows are in order before and after, by the names after: each a `row key` or a `sort
    key`."""
    if not isinstance(before, TableSpec) or not isinstance(after, TableSpec):
        return {}
    live = {column.name for column in before.columns}
    renamed = {each.renamed_from: each.name for each in after.columns if each.renamed_from and each.name not in live}
    held = {renamed.get(key, key) for key in (*before.row_keys, *before.sort_keys)}
    sort_keys = {key: "sort key" for key in after.sort_keys if key in held}
    return sort_keys | {key: "row key" for key in after.row_keys if key in held}


def refuse_unsupported(
    changes: Iterable[c.Change], keys: Mapping[str, str] = _NO_KEYS, *, has_rows: bool = True
) -> None:
    """Raises Refused, which names every change that cannot be applied."""
    refused = [(change.address, why) for change in changes if (why := refusal(change, keys, has_rows=has_rows))]
    if refused:
        raise Refused("; ".join(why for _, why in refused), where=refused[0][0], remedy="undo it in the specs")
