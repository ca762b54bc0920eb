"""Changes of a table's services."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from deployer.specs.model import ServiceSpec, Trigger


@dataclass(frozen=True, slots=True)
class CreateService:
    kind = "CreateService"
    address: str
    service: ServiceSpec


@dataclass(frozen=True, slots=True)
class DeleteService:
    kind = "DeleteService"
    address: str
    service: ServiceSpec


@dataclass(frozen=True, slots=True)
class ChangeTrigger:
    """The trigger of a service; None: on demand only. `service` is its kind."""

    kind = "ChangeTrigger"

    address: str
    service: str
    before: Trigger | None
    after: Trigger | None


@dataclass(frozen=True, slots=True)
class ChangeServiceOptions:
    """The options of a service. `before_raw` and `after_raw`: the options are unchecked texts."""

    kind = "ChangeServiceOptions"

    address: str
    service: str
    before: Mapping[str, object]
    after: Mapping[str, object]
    before_raw: bool = False
    after_raw: bool = False


@dataclass(frozen=True, slots=True)
class MoveServiceToCluster:
    """A service runs on another cluster; None: the default cluster of the table's jobs."""

    kind = "MoveServiceToCluster"

    address: str
    service: str
    before: str | None
    after: str | None


ServiceChange = CreateService | DeleteService | ChangeTrigger | ChangeServiceOptions | MoveServiceToCluster
