"""The provider `lake` of Pulumi's protocol, on plain values: it passes each request to the kind of its resource.

Its methods run in the caller's thread. The embedded engine calls them directly; `pulumi-resource-lake` serves them over
gRPC (`deployer.provider.plugin`), each call in a thread of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from deployer.errors import InvalidInput, Refused
from deployer.platform.system.progress import OnProgress
from deployer.provider.resources.dataset import DatasetKind
from deployer.provider.resources.instance import InstanceKind
from deployer.provider.resources.kind import CheckFailure, Difference, Properties, Resource
from deployer.provider.resources.run_context import Stores
from deployer.provider.resources.table import TableKind
from deployer.provider.unplanned import UnplannedRun
from deployer.provider.urn import DATASET_TYPE, INSTANCE_TYPE, TABLE_TYPE, address_of, type_of


class Kind(Protocol):
    """The protocol of a kind of resource, which is one module."""

    def check(self, news: Properties) -> tuple[Properties, tuple[CheckFailure, ...]]:
        """Returns the inputs in canonical form, and the reasons why they are not inputs of this kind."""

    def faults(self, inputs: Properties) -> tuple[CheckFailure, ...]:
        """Returns the faults that the rules of specs find in canonical inputs."""

    def diff(self, olds: Properties, news: Properties) -> Difference:
        """Returns the differences between the resource's outputs and new inputs, by the planner's own comparison."""

    def preview(self, news: Properties) -> Properties:
        """Returns the outputs that are known before the resource exists."""

    def create(self, stores: Stores, urn: str, news: Properties, on_progress: OnProgress) -> Resource:
        """Creates the resource, or resumes an interrupted creation."""

    def read(self, stores: Stores, id: str, inputs: Properties) -> Resource | None:
        """Returns the live resource; None when it is gone. `inputs` are empty for an import."""

    def update(self, stores: Stores, id: str, news: Properties, on_progress: OnProgress) -> Resource:
        """Changes the live resource to `news`."""

    def delete(self, stores: Stores, urn: str, id: str, outputs: Properties) -> None:
        """Deletes the resource; does nothing when it does not exist."""


KINDS: Mapping[str, Kind] = {
    INSTANCE_TYPE: InstanceKind(),
    TABLE_TYPE: TableKind(),
    DATASET_TYPE: DatasetKind(),
}


class LakeProvider:
    """Instances, tables and datasets as Pulumi resources. Safe for threads.

    Properties are plain JSON values without secrets: `check` refuses inputs that contain secrets.
    """

    def __init__(self, stores: Stores, unplanned: UnplannedRun | None = None) -> None:
        """`unplanned` checks the run by the project's policies; None where deployer has checked the plan."""
        self.stores = stores
        self._unplanned = unplanned
        #: callback for progress: URN, current work, completed parts, all parts, and their unit; set by the caller
        self.on_progress: Callable[[str, str, int, int | None, str], None] = lambda *_: None

    def check(
        self, urn: str, news: Properties, secret: Collection[str] = ()
    ) -> tuple[Properties, tuple[CheckFailure, ...]]:
        """Returns the inputs in canonical form, and the reasons why they are refused. `secret` are inputs that are or
        contain secrets."""
        if secret:
            reason = (
                "it is secret, or holds a secret, and a lake stores its specs without encryption: leave the secret out"
            )
            return news, tuple(CheckFailure(name, reason) for name in sorted(secret))
        if refusals := self._refusals(urn):
            return news, tuple(CheckFailure("", reason) for reason in refusals)
        kind, declared = _kind(urn), self.stores.declared
        if declared is not None and (as_declared := declared.canonical(address_of(urn) or "", news)) is not None:
            return as_declared, ()
        inputs, failures = kind.check(news)
        if not failures:  # the rules of specs have checked declared inputs already
            failures = declared.check(address_of(urn) or "", inputs) if declared is not None else kind.faults(inputs)
        return inputs, failures

    def diff(self, urn: str, olds: Properties, news: Properties) -> Difference:
        """Returns the differences between the resource's outputs and new inputs."""
        return _kind(urn).diff(olds, news)

    def create(self, urn: str, news: Properties, *, preview: bool = False) -> Resource:
        """Creates and returns the resource; in a preview, the resource has no id."""
        kind = _kind(urn)
        if preview:
            return Resource("", news, kind.preview(news))
        return kind.create(self.stores, urn, news, self._progress_of(urn))

    def read(self, urn: str, id: str, inputs: Properties) -> Resource | None:
        """Returns the live resource; None when it is gone. `inputs` are empty for an import."""
        return _kind(urn).read(self.stores, id, inputs)

    def update(self, urn: str, id: str, news: Properties, *, preview: bool = False) -> Resource:
        """Updates the resource, and returns it with the new inputs."""
        kind = _kind(urn)
        if preview:
            return Resource(id, news, kind.preview(news))
        return kind.update(self.stores, id, news, self._progress_of(urn))

    def delete(self, urn: str, id: str, outputs: Properties) -> None:
        kind = _kind(urn)
        if refusals := self._refusals(urn, deletes=True):
            raise Refused("; ".join(refusals), where=address_of(urn))
        if self.stores.declared is not None:
            self.stores.declared.refuse_deletion(address_of(urn) or "", outputs)
        kind.delete(self.stores, urn, id, outputs)

    def _refusals(self, urn: str, *, deletes: bool = False) -> tuple[str, ...]:
        """Returns why the policies refuse the run. From then on, the program may register only the resources that the
        policies checked."""
        if self._unplanned is None:
            return ()
        found = self._unplanned.judgement(urn, deletes=deletes)
        self.stores.declared = found.declared
        return found.refusals

    def cancel(self) -> None:
        self.stores.close()

    def _progress_of(self, urn: str) -> OnProgress:
        return lambda now: self.on_progress(urn, now.doing, now.done, now.total, now.unit)


def _kind(urn: str) -> Kind:
    found = KINDS.get(type_of(urn))
    if found is None:
        raise InvalidInput(
            f"the provider lake has no resource type {type_of(urn)}", where=urn, remedy=f"use one of {', '.join(KINDS)}"
        )
    return found
