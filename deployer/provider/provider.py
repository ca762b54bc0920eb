"""The provider `lake` of Pulumi's protocol: hands each request to the kind of its resource.

Its methods are those of the SDK's `Provider`, without `async`: they work on the thread that calls them. The embedded
engine calls them as they are; `pulumi-resource-lake` serves them over gRPC, each call in a thread of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pulumi.provider.experimental import provider as sdk
from pulumi.provider.experimental.property_value import Computed, PropertyValue

from deployer.errors import InvalidInput, Refused
from deployer.provider.resources.instance import InstanceKind
from deployer.provider.resources.kind import UNKNOWN, DiffKind, Kind
from deployer.provider.resources.run_context import Stores
from deployer.provider.resources.table import TableKind
from deployer.provider.unplanned import UnplannedRun
from deployer.provider.urn import INSTANCE_TYPE, TABLE_TYPE, address_of, type_of
from deployer.system.progress import OnProgress

KINDS: Mapping[str, Kind] = {INSTANCE_TYPE: InstanceKind(), TABLE_TYPE: TableKind()}

_DIFF_KINDS: Mapping[DiffKind, sdk.PropertyDiffKind] = {
    "add": sdk.PropertyDiffKind.ADD,
    "delete": sdk.PropertyDiffKind.DELETE,
    "update": sdk.PropertyDiffKind.UPDATE,
}


class LakeProvider:
    """Instances and tables as Pulumi resources. Safe for threads."""

    resumes_creates = True  #: a create that was cut off is gone on with by the next one

    def __init__(self, stores: Stores, unplanned: UnplannedRun | None = None) -> None:
        """`unplanned` judges the run by the project's policies; None where a plan of deployer has been judged."""
        self.stores = stores
        self._unplanned = unplanned
        #: Told the URN, what is being done, parts done, of how many, and what these are; set by who runs the provider.
        self.on_progress: Callable[[str, str, int, int | None, str], None] = lambda *_: None

    def check_config(self, request: sdk.CheckRequest) -> sdk.CheckResponse:
        return sdk.CheckResponse(request.new_inputs, None)

    def diff_config(self, request: sdk.DiffRequest) -> sdk.DiffResponse:
        return sdk.DiffResponse(changes=False, replaces=[], stables=[], delete_before_replace=False, diffs=[])

    def configure(self, request: sdk.ConfigureRequest) -> sdk.ConfigureResponse:
        # secrets are taken to be refused: a lake's log and its catalogs keep in clear what declares it
        return sdk.ConfigureResponse(accept_secrets=True, accept_outputs=False, supports_preview=True)

    def check(self, request: sdk.CheckRequest) -> sdk.CheckResponse:
        if secret := [name for name, value in request.new_inputs.items() if _has_secret(value)]:
            reason = "it is secret, or holds a secret, and a lake keeps in clear what declares it: leave the secret out"
            return sdk.CheckResponse(request.new_inputs, [sdk.CheckFailure(name, reason) for name in sorted(secret)])
        if refusals := self._refusals(request.urn):
            return sdk.CheckResponse(request.new_inputs, [sdk.CheckFailure("", reason) for reason in refusals])
        inputs, failures = _kind(request.urn).check(_plain(request.new_inputs))
        if not failures and self.stores.declared is not None:
            failures = self.stores.declared.check(address_of(request.urn) or "", inputs)
        return sdk.CheckResponse(
            _properties(inputs), [sdk.CheckFailure(failure.property, failure.reason) for failure in failures]
        )

    def diff(self, request: sdk.DiffRequest) -> sdk.DiffResponse:
        found = _kind(request.urn).diff(_plain(request.old_state), _plain(request.new_inputs))
        detailed = {path: sdk.PropertyDiff(_DIFF_KINDS[kind], True) for path, kind in found.detailed.items()}
        return sdk.DiffResponse(
            changes=found.changed,
            replaces=list(found.replaces),
            stables=[],
            delete_before_replace=found.delete_before_replace,
            diffs=sorted({path.split("[")[0].split(".")[0] for path in found.detailed}),
            detailed_diff=detailed,
        )

    def create(self, request: sdk.CreateRequest) -> sdk.CreateResponse:
        kind, news = _kind(request.urn), _plain(request.properties)
        if request.preview:
            return sdk.CreateResponse("", _properties(kind.preview(news)))
        made = kind.create(self.stores, request.urn, news, self._tell(request.urn))
        return sdk.CreateResponse(made.id, _properties(made.outputs))

    def read(self, request: sdk.ReadRequest) -> sdk.ReadResponse:
        kind, inputs = _kind(request.urn), _plain(request.inputs)
        found = kind.read(self.stores, request.resource_id, inputs)
        if found is None:
            return sdk.ReadResponse(None, {}, {})
        return sdk.ReadResponse(found.id, _properties(found.outputs), _properties(found.inputs))

    def update(self, request: sdk.UpdateRequest) -> sdk.UpdateResponse:
        kind, news = _kind(request.urn), _plain(request.news)
        if request.preview:
            return sdk.UpdateResponse(_properties(kind.preview(news)))
        updated = kind.update(self.stores, request.resource_id, news, self._tell(request.urn))
        return sdk.UpdateResponse(_properties(updated.outputs))

    def delete(self, request: sdk.DeleteRequest) -> None:
        kind, outputs = _kind(request.urn), _plain(request.properties)
        if refusals := self._refusals(request.urn, deletes=True):
            raise Refused("; ".join(refusals), where=address_of(request.urn))
        if self.stores.declared is not None:
            self.stores.declared.refuse_deletion(address_of(request.urn) or "", outputs)
        kind.delete(self.stores, request.urn, request.resource_id, outputs)

    def _refusals(self, urn: str, *, deletes: bool = False) -> tuple[str, ...]:
        """Why the policies refuse the run. What they judged is from then on what the program may register."""
        if self._unplanned is None:
            return ()
        found = self._unplanned.judgement(urn, deletes=deletes)
        self.stores.declared = found.declared
        return found.refusals

    def cancel(self) -> None:
        self.stores.close()

    def _tell(self, urn: str) -> OnProgress:
        return lambda now: self.on_progress(urn, now.doing, now.done, now.total, now.unit)


def _kind(urn: str) -> Kind:
    found = KINDS.get(type_of(urn))
    if found is None:
        raise InvalidInput(
            f"the provider lake has no resource type {type_of(urn)}", where=urn, remedy=f"use one of {', '.join(KINDS)}"
        )
    return found


def _has_secret(value: PropertyValue) -> bool:
    if value.is_secret:
        return True
    match value.value:
        case None | str() | bool() | float() | int() | Computed():
            return False
        case Mapping() as mapping:
            return any(map(_has_secret, mapping.values()))
        case items:
            return any(map(_has_secret, items))  # type: ignore[arg-type]


def _plain(properties: Mapping[str, PropertyValue]) -> dict[str, Any]:
    return {key: _plain_value(value) for key, value in properties.items()}


def _plain_value(value: PropertyValue) -> Any:
    match value.value:
        case None | str() | bool() as plain:
            return plain
        case float() | int() as number:
            return int(number) if number == int(number) else number
        case Computed():
            return UNKNOWN
        case Mapping() as mapping:
            return _plain(mapping)
        case items:
            return [_plain_value(item) for item in items]  # type: ignore[union-attr]


def _properties(plain: Mapping[str, Any]) -> dict[str, PropertyValue]:
    return {key: _property(value) for key, value in plain.items()}


def _property(value: Any) -> PropertyValue:
    if isinstance(value, Mapping):
        return PropertyValue(_properties(value))
    if isinstance(value, list | tuple):
        return PropertyValue([_property(item) for item in value])
    # UNKNOWN stays the string that it is on the wire: the SDK's servicer cannot marshal its own Computed
    return PropertyValue(float(value) if isinstance(value, int) and not isinstance(value, bool) else value)
