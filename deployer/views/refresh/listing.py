"""The list of an instance's views, each with its sources and the plan of a refresh."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from deployer.errors import DeployerError
from deployer.state.reader import StateReader
from deployer.tables.open_table import read_entry
from deployer.views.definition import ViewDefinition, view_definition
from deployer.views.refresh.plan import RefreshPlan
from deployer.views.refresh.queries import Queries
from deployer.views.refresh.record import reflected
from deployer.views.refresh.refresh import plan_refresh


@dataclass(frozen=True, slots=True)
class ListedView:
    """A view. `sources` are the current names of the tables that its next refresh would read or, where that is unknown,
    of those that the view reflects. `plan` is what a refresh would do now; None where no plan can be made, and
    `failure` then says why."""

    name: str
    definition: ViewDefinition
    rows: int
    sources: tuple[str, ...]
    reflects: Mapping[str, str]
    plan: RefreshPlan | None
    failure: str = ""

    def as_json(self) -> dict[str, Any]:
        """Returns the JSON form."""
        return {
            "name": self.name,
            "query": self.definition.query,
            "functions": dict(self.definition.functions),
            "max_staleness": self.definition.max_staleness,
            "rows": self.rows,
            "sources": list(self.sources),
            "reflects": dict(self.reflects),
            "plan": None if self.plan is None else asdict(self.plan),
            "failure": self.failure,
        }


def views_of(store: StateReader, root: str, queries: Queries) -> list[ListedView]:
    """Returns all views in the order of their names. Reads logs and manifests only. A view that cannot be planned has
    the reason as its `failure`."""
    tables = store.instance().tables
    found = []
    for entry in sorted(tables.values(), key=lambda each: each.full_name):
        if entry.status != "active":
            continue
        table = read_entry(store, root, entry)
        definition = view_definition(table.state.properties, table.address)
        if definition is None:
            continue
        record = reflected(table.state)
        known = {
            tables[each.table_id].full_name: f"{each.dataset}:{each.lance_version}"
            for each in (record.sources if record is not None else ())
            if each.table_id in tables
        }
        plan, failure = None, ""
        try:
            plan = plan_refresh(queries, table)
        except DeployerError as error:
            failure = error.what
        sources = tuple(plan.would_reflect) if plan is not None else tuple(known)
        rows = table.state.files.rows
        found.append(ListedView(entry.full_name, definition, rows, sources, known, plan, failure))
    return found
