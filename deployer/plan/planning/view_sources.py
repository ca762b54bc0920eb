"""Refuses changes of tables that remove columns or tables which a view reads.

Pure. Specs that declare a view are checked against the declared columns, so that only changes of a column's type remain
for a plan. A view without a declaration is still refreshed, by its stored query.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from deployer.live.model import LiveLake, Unreadable
from deployer.plan import changes as c
from deployer.plan.graph import Graph
from deployer.platform.sql.one_expression import names_in
from deployer.platform.sql.select import without_comments
from deployer.specs.model import TableSpec
from deployer.specs.types.column_names import shown
from deployer.specs.types.view import ViewSpec

if TYPE_CHECKING:
    from deployer.plan.model import ResourcePlan


@dataclass(frozen=True, slots=True)
class _Reader:
    """A view that exists after the plan. `declared`: specs declare it. `is_rebuilt`: the plan builds it again."""

    name: str
    view: ViewSpec
    declared: bool
    is_rebuilt: bool

    def reads(self, table: str, column: str) -> bool:
        if self.declared and self.view.reads:
            return column in self.view.reads.get(table, ())
        return column.lower() in {name.lower() for name in names_in(without_comments(self.view.query))}


def refuse_losses_of_views(resources: Sequence[ResourcePlan], graph: Graph, live: LiveLake) -> list[ResourcePlan]:
    """Returns the plan's resources. Each change that removes something which a remaining view reads is refused."""
    readers = list(_readers(resources, graph, live))
    return [_checked(resource, readers, graph, live) for resource in resources] if readers else list(resources)


def _readers(resources: Iterable[ResourcePlan], graph: Graph, live: LiveLake) -> Iterator[_Reader]:
    plans = {each.address: each for each in resources}
    deleted = {each.live_address for each in plans.values() if each.action == "delete"}
    declared = set()
    for node in graph.nodes.values():
        spec = node.spec
        if not isinstance(spec, TableSpec) or spec.view is None:
            continue
        now = live.of(spec)
        if now is None or isinstance(now, Unreadable):
            continue  # it is created after its sources have changed
        declared.add(now.spec.address)
        changes = plans[node.address].changes if node.address in plans else ()
        queries = [each.change for each in changes if isinstance(each.change, c.ChangeViewQuery)]
        rebuilt = any(each.before and each.after and not each.before.makes_the_rows_of(each.after) for each in queries)
        yield _Reader(spec.full_name, spec.view, True, rebuilt)
    for address, table in sorted(live.tables.items()):
        if table.spec.view is not None and address not in declared and address not in deleted:
            yield _Reader(table.spec.full_name, table.spec.view, False, False)


def _checked(resource: ResourcePlan, readers: Sequence[_Reader], graph: Graph, live: LiveLake) -> ResourcePlan:
    desired = graph.spec(resource.address)
    names = {address.partition("/")[2] for address in (resource.address, resource.live_address) if address}
    own = [(reader, name) for reader in readers for name in names if name in reader.view.tables]
    if not own:
        return resource
    before = live.tables.get(resource.live_address)
    changes = []
    for each in resource.changes:
        losses = (_loss(each.change, reader, name, desired, before) for reader, name in own)
        why = next(filter(None, losses), None)
        changes.append(replace(each, refused=why) if why and each.refused is None else each)
    return replace(resource, changes=tuple(changes))


def _loss(change: c.Change, reader: _Reader, table: str, desired: object, before: object) -> str | None:
    """Returns why a change of a table breaks the view; None where it does not."""
    if reader.declared:
        match change:
            case c.WidenColumn(column=path) | c.ConvertColumn(column=path):
                if reader.is_rebuilt or not reader.reads(table, path[0]):
                    return None
                return (
                    f"view {reader.name} reads column {shown(path[0])}, whose type changes: change the view's query "
                    "with it, such as by a CAST to the former type, or remove the view first"
                )
        return None
    remedy = f"declare the view with another query, or delete it: `deployer table delete {reader.name}`"
    match change:
        case c.DeleteTable():
            return f"view {reader.name} reads it, and no specs declare that view: {remedy}"
        case c.RenameTable(before=name):
            return f"view {reader.name} reads it as {name}, and no specs declare that view: {remedy}"
        case c.DropColumn(column=path) | c.RenameColumn(column=path) | c.WidenColumn(column=path):
            lost = [path[0]]
        case c.ConvertColumn(column=path):
            lost = [path[0]]
        case c.ChangeViewQuery() if isinstance(desired, TableSpec):
            kept = {column.name for column in desired.columns}
            spec = getattr(before, "spec", None)
            lost = [column.name for column in spec.columns if column.name not in kept] if spec is not None else []
        case _:
            return None
    found = next((name for name in lost if reader.reads(table, name)), None)
    if found is None:
        return None
    return f"view {reader.name} reads column {shown(found)}, and no specs declare that view: {remedy}"
