"""Services in the form for display: their settings, status and newest run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from deployer.live.services import fault_of, service_spec
from deployer.platform.files.json_values import JSON
from deployer.platform.system.clock import Clock
from deployer.runs.records import runs_of
from deployer.services.agent.watch import Watch
from deployer.specs.schema.services import all_options
from deployer.state.model.services import Run, Service, ServiceKind
from deployer.tables.open_table import ReadTable


@dataclass(frozen=True, slots=True)
class TableService:
    """A service of a table. `options` are all of the kind's, defaults included. `broken` is the reason why the
    state's record of it is not valid; such a service does not run.

    `status` is what `service list` shows (OK, DUE, QUEUED, RUNNING, PAUSED, FAILED, OVERDUE, BROKEN), or UNREADABLE
    where the table cannot be read. `reason` explains the status; it may be empty.
    """

    lake: str
    database: str
    table: str
    service: ServiceKind
    trigger_mode: str
    trigger: Mapping[str, JSON] = field(default_factory=dict)
    options: Mapping[str, JSON] = field(default_factory=dict)
    cluster: str | None = None
    paused: bool = False
    unsafe_raw: bool = False
    last_run: Run | None = None
    broken: str = ""
    status: str = ""
    reason: str = ""


def described(lake: str, table: ReadTable, services: Iterable[Service]) -> tuple[TableService, ...]:
    """Returns the services of the table with their settings (including defaults), their status and their newest run."""
    table_id = table.entry.table_id
    seen = Watch(table.store, table.root, only={table_id}).look(Clock().now()).tables[table_id]
    statuses = {each.service: (each.label, each.why) for each in seen.service_statuses}
    return tuple(
        _described(lake, table, each, *statuses.get(each.kind, ("UNREADABLE", seen.trouble))) for each in services
    )


def _described(lake: str, table: ReadTable, service: Service, status: str, reason: str) -> TableService:
    broken = fault_of(service)
    checked = not service.unsafe_raw and not broken
    options = all_options(service.kind, service_spec(service).options) if checked else service.options
    return TableService(
        lake=lake,
        database=table.entry.database,
        table=table.entry.name,
        service=service.kind,
        trigger_mode=service.trigger_mode,
        trigger=service.trigger,
        options=options,
        cluster=service.cluster,
        paused=service.paused,
        unsafe_raw=service.unsafe_raw,
        last_run=next(iter(runs_of(table.state, service.kind)), None),
        broken=broken,
        status=status,
        reason=reason,
    )
