"""Services as they are shown: with all of their settings, and their newest run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from deployer.live.services import fault_of, service_spec
from deployer.services.runs import runs_of
from deployer.specs.service_schema import all_options
from deployer.state.json_values import JSON
from deployer.state.services import Run, Service, ServiceKind
from deployer.tables.dataset import ReadTable


@dataclass(frozen=True, slots=True)
class TableService:
    """A service of a table. `options` are all of the kind's, also those that have their default. `broken` says why it
    does not run: what the state holds of it is not valid."""

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


def described(lake: str, table: ReadTable, service: Service) -> TableService:
    """A service with its settings, defaults among them, and its newest run."""
    broken = fault_of(service)
    checked = not service.unsafe_raw and not broken
    options = all_options(service.kind, service_spec(service).options) if checked else service.options
    return TableService(
        lake,
        table.entry.database,
        table.entry.name,
        service.kind,
        service.trigger_mode,
        service.trigger,
        options,
        service.cluster,
        service.paused,
        service.unsafe_raw,
        next(iter(runs_of(table.state, service.kind)), None),
        broken,
    )
