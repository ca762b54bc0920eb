"""Changes of an instance."""

from __future__ import annotations

from dataclasses import dataclass

from deployer.specs.model import Cluster, InstanceSpec, StateBackend


@dataclass(frozen=True, slots=True)
class CreateInstance:
    kind = "CreateInstance"
    address: str
    spec: InstanceSpec


@dataclass(frozen=True, slots=True)
class DeleteInstance:
    kind = "DeleteInstance"
    address: str


@dataclass(frozen=True, slots=True)
class ChangeRoot:
    """A new root. `found`: the lake was moved to the new root by hand; only its record changes."""

    kind = "ChangeRoot"

    address: str
    before: str
    after: str
    found: bool = False


@dataclass(frozen=True, slots=True)
class ChangeStateBackend:
    """A new state store. `found`: the state was imported into the new store with a new root; only its record
    changes."""

    kind = "ChangeStateBackend"

    address: str
    before: StateBackend
    after: StateBackend
    found: bool = False


@dataclass(frozen=True, slots=True)
class ChangeEngine:
    kind = "ChangeEngine"
    address: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class ChangeClusters:
    kind = "ChangeClusters"
    address: str
    before: tuple[Cluster, ...]
    after: tuple[Cluster, ...]


@dataclass(frozen=True, slots=True)
class ChangeNotify:
    """The addresses that are notified of failed runs."""

    kind = "ChangeNotify"

    address: str
    before: tuple[str, ...]
    after: tuple[str, ...]
