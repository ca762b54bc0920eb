"""A provider as the engine sees it: Pulumi's provider protocol on plain values.

Two implementations: `InProcess` calls the project's own provider in this process, `RemoteProvider` an executable over
gRPC.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from deployer.engine.values.property_paths import DiffKind
from deployer.engine.values.resource import ResourceState
from deployer.engine.values.values import Properties


@dataclass(frozen=True, slots=True)
class Features:
    """The features that a provider reported when it was configured."""

    accept_secrets: bool = False
    supports_preview: bool = False


@dataclass(frozen=True, slots=True)
class CheckedInputs:
    """A provider's answer to inputs: the inputs with its defaults. `failures` are pairs of property and reason."""

    inputs: Mapping[str, Any]
    failures: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class InputsDiff:
    """A provider's comparison of inputs. `changes` is None when the provider lets the engine compare them."""

    changes: bool | None
    replaces: tuple[str, ...] = ()
    stables: tuple[str, ...] = ()
    delete_before_replace: bool = False
    diffs: tuple[str, ...] = ()
    detailed: Mapping[str, DiffKind] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Live:
    """A resource as the provider reports it; an empty `id` from a read means that the resource does not exist."""

    id: str
    outputs: Mapping[str, Any]
    inputs: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Refreshed:
    """The live state that a preview's refresh read, for the run that applies the preview, so that live state is read
    once for both.

    It has the records that providers were asked about and their answers, by URN and id.
    """

    answers: Mapping[tuple[str, str], tuple[ResourceState, Live]] = field(default_factory=dict)

    def answer(self, state: ResourceState) -> Live | None:
        """Returns the live state of a resource; None where the resource's record has changed.

        A record with secrets always counts as changed: in a preview they are sealed, and the provider does not get
        them.
        """
        asked, live = self.answers.get((state.urn, state.id), (None, None))
        same = asked is not None and (asked.inputs, asked.outputs) == (state.inputs, state.outputs)
        return live if same else None

    def without(self, ids: Collection[str]) -> Refreshed:
        """Returns the same without the resources with these ids, which have changed since."""
        return Refreshed({key: answer for key, answer in self.answers.items() if key[1] not in ids})


@dataclass(frozen=True, slots=True)
class Invoked:
    value: Mapping[str, Any]
    failures: tuple[tuple[str, str], ...] = ()


# : URN, current work, completed parts, all parts (None: unknown), and the parts' unit. Raises `Interrupted` when the :
# step is to end, if it can.
OnStepProgress = Callable[[str, str, int, int | None, str], None]


class ProviderFailed(Exception):
    """A provider answered a call with an error; the message is the provider's own."""


class InitFailed(ProviderFailed):
    """A resource exists but did not become ready; it is stored in the state with the reasons."""

    def __init__(self, message: str, live: Live, reasons: tuple[str, ...]) -> None:
        super().__init__(message)
        self.live, self.reasons = live, reasons


class ProviderClient(Protocol):
    """Calls from several threads at once must be safe. Every method raises `ProviderFailed`."""

    resumes_creates: bool  #: whether `create` may be called again after a crash in the middle of it

    def check_config(self, urn: str, olds: Properties, news: Properties) -> CheckedInputs: ...
    def diff_config(self, urn: str, olds: Properties, news: Properties) -> InputsDiff: ...
    def configure(self, urn: str, id_: str, package: str, inputs: Properties) -> Features: ...
    def check(self, urn: str, olds: Properties, news: Properties, seed: bytes) -> CheckedInputs: ...
    def diff(
        self,
        urn: str,
        id_: str,
        old_inputs: Properties,
        old_outputs: Properties,
        new_inputs: Properties,
        ignore_changes: tuple[str, ...],
    ) -> InputsDiff: ...
    def create(self, urn: str, inputs: Properties, timeout: float, preview: bool) -> Live: ...
    def read(self, urn: str, id_: str, inputs: Properties, outputs: Properties) -> Live: ...
    def update(
        self,
        urn: str,
        id_: str,
        old_inputs: Properties,
        old_outputs: Properties,
        new_inputs: Properties,
        timeout: float,
        ignore_changes: tuple[str, ...],
        preview: bool,
    ) -> Live: ...
    def delete(self, urn: str, id_: str, old_inputs: Properties, outputs: Properties, timeout: float) -> None: ...
    def invoke(self, token: str, args: Properties) -> Invoked: ...
    def close(self) -> None: ...


class ProcessClient(ProviderClient, Protocol):
    """A client of a provider that runs in this process."""

    on_progress: OnStepProgress  #: set by the engine


#: a client for the whole run, or a class or function that makes one for each configuration
Source = ProcessClient | Callable[[], ProcessClient]
