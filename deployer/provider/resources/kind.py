"""The interface of a kind of resource for the provider.

Properties are plain JSON values. A value that is unknown in a preview is the string `UNKNOWN`, as on Pulumi's wire.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

#: Pulumi's sentinel for a string that is not known before the update runs (sdk/go/common/resource/plugin/rpc.go).
UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"

Properties = Mapping[str, Any]
DiffKind = Literal["add", "delete", "update"]


@dataclass(frozen=True, slots=True)
class CheckFailure:
    """An invalid input: the property's name, what is wrong and what to do."""

    property: str
    reason: str


@dataclass(frozen=True, slots=True)
class Difference:
    """The differences of an update, by property path such as `row_keys`; `replaces` force a replacement."""

    detailed: Mapping[str, DiffKind]
    replaces: tuple[str, ...] = ()
    delete_before_replace: bool = False

    @property
    def changed(self) -> bool:
        return bool(self.detailed or self.replaces)

    @property
    def names(self) -> tuple[str, ...]:
        """The properties that the paths lead into."""
        return tuple(sorted({path.split("[")[0].split(".")[0] for path in self.detailed}))


@dataclass(frozen=True, slots=True)
class Resource:
    """A live resource: its id, the inputs that would declare it, and its outputs, which include the inputs."""

    id: str
    inputs: Properties
    outputs: Properties
