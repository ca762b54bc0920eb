"""The options that a run goes by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deployer.errors import Refused
from deployer.live.services import fault_of
from deployer.specs.serialized.service_options import options_from_text, options_of_values
from deployer.state.model.entities import TableState
from deployer.state.model.services import ServiceKind


def options_of(state: TableState, kind: ServiceKind, given: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Those that are given, else those of the table's own service, else none.

    What was taken unchecked is checked now: raises InvalidInput for what this release does not know. So is what the
    state holds: raises Refused for a service that no spec can declare.
    """
    service = state.services.get(kind)
    if given is not None or service is None:
        return options_of_values(kind, given or {})
    if not service.unsafe_raw and (wrong := fault_of(service)):
        raise Refused(
            f"the {kind} service that the state holds is not valid, so it is not run: {wrong}",
            where=f"table {state.table_id}",
            remedy="`deployer state log` says who put it there; `deployer up` puts back what the specs declare",
        )
    if service.unsafe_raw:
        return options_from_text(kind, {name: str(value) for name, value in service.options.items()})
    return service.options
