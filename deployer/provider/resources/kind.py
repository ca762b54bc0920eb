"""What the provider needs of a kind of resource: a small interface, kept by one module a kind.

Properties are plain JSON values. A value that a preview cannot know yet is the string `UNKNOWN`, as on Pulumi's wire.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from deployer.provider.resources.run_context import Stores
from deployer.system.progress import OnProgress

#: Pulumi's sentinel for a string that is not known before the update runs (sdk/go/common/resource/plugin/rpc.go).
UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"

Properties = Mapping[str, Any]
DiffKind = Literal["add", "delete", "update"]


@dataclass(frozen=True, slots=True)
class CheckFailure:
    """An input that cannot be: the property's name, what is wrong and what to do."""

    property: str
    reason: str


@dataclass(frozen=True, slots=True)
class Difference:
    """What an update would do, by property path such as `row_keys`; `replaces` force a replacement."""

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
    """A live resource: its id, the inputs that would declare it as it is, and its outputs, which hold those too."""

    id: str
    inputs: Properties
    outputs: Properties


class Kind(Protocol):
    """One kind of resource."""

    def check(self, news: Properties) -> tuple[Properties, tuple[CheckFailure, ...]]:
        """The inputs in canonical form, and what makes them none of the kind's."""

    def faults(self, inputs: Properties) -> tuple[CheckFailure, ...]:
        """What the rules of specs refuse in canonical inputs."""

    def diff(self, olds: Properties, news: Properties) -> Difference:
        """What differs between the outputs that the resource has and new inputs, by the planner's own comparison."""

    def preview(self, news: Properties) -> Properties:
        """The outputs as far as they are known before the resource exists."""

    def create(self, stores: Stores, urn: str, news: Properties, on_progress: OnProgress) -> Resource:
        """Create the resource, or go on where a creation that was cut off stopped."""

    def read(self, stores: Stores, id: str, inputs: Properties) -> Resource | None:
        """The live resource; None when it is gone. `inputs` are empty for an import."""

    def update(self, stores: Stores, id: str, news: Properties, on_progress: OnProgress) -> Resource:
        """Bring the live resource up to `news`."""

    def delete(self, stores: Stores, urn: str, id: str, outputs: Properties) -> None:
        """Delete the resource; nothing to do when it is gone."""
