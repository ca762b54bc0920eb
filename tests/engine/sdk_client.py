"""A provider of the SDK's class, called in this process: so engine tests need no process for each provider.

Its methods get the same request objects that the SDK's gRPC server would hand it: a value that is not known yet is the
unknown sentinel as a string.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import pulumi
from pulumi.provider.experimental import provider as sdk
from pulumi.provider.experimental.property_value import Computed, PropertyValue, ResourceReference

from deployer.engine.interfaces.provider import (
    CheckedInputs,
    Features,
    InputsDiff,
    Invoked,
    Live,
    OnStepProgress,
    ProviderFailed,
)
from deployer.engine.project.project import text_of
from deployer.engine.values.assets import hashed
from deployer.engine.values.property_paths import DiffKind
from deployer.engine.values.values import (
    ARCHIVE,
    ASSET,
    SECRET,
    SIG,
    UNKNOWN,
    Properties,
    secret,
    without_secrets,
)
from deployer.errors import DeployerError

RESOURCE = "5cf8f73096256a8f31e491e813e4eb8e"
_EXACT = 2**53
_KINDS: Mapping[sdk.PropertyDiffKind, DiffKind] = {
    sdk.PropertyDiffKind.ADD: "add",
    sdk.PropertyDiffKind.ADD_REPLACE: "add-replace",
    sdk.PropertyDiffKind.DELETE: "delete",
    sdk.PropertyDiffKind.DELETE_REPLACE: "delete-replace",
    sdk.PropertyDiffKind.UPDATE: "update",
    sdk.PropertyDiffKind.UPDATE_REPLACE: "update-replace",
}


class SdkClient:
    """Fulfils `ProcessClient` on a provider object of the SDK, whose coroutines never wait."""

    def __init__(self, provider: sdk.Provider) -> None:
        self._provider = provider
        self._accept_secrets = True
        self.resumes_creates = bool(getattr(provider, "resumes_creates", True))
        self.on_progress: OnStepProgress = lambda *_: None

    def check_config(self, urn: str, olds: Properties, news: Properties) -> CheckedInputs:
        return self._check(self._provider.check_config, urn, olds, news, b"")

    def diff_config(self, urn: str, olds: Properties, news: Properties) -> InputsDiff:
        request = sdk.DiffRequest(urn, "", self._map(olds), self._map(news), [])
        return _diffed(self._call(self._provider.diff_config, request))

    def configure(self, urn: str, id_: str, package: str, inputs: Properties) -> Features:
        variables = {f"{package}:config:{key}": text_of(without_secrets(value)) for key, value in inputs.items()}
        answer = self._call(
            self._provider.configure, sdk.ConfigureRequest(variables, to_property_map(inputs), True, True)
        )
        self._accept_secrets = answer.accept_secrets
        return Features(answer.accept_secrets, answer.supports_preview)

    def check(self, urn: str, olds: Properties, news: Properties, seed: bytes) -> CheckedInputs:
        return self._check(self._provider.check, urn, olds, news, seed)

    def diff(
        self,
        urn: str,
        id_: str,
        old_inputs: Properties,
        old_outputs: Properties,
        new_inputs: Properties,
        ignore_changes: tuple[str, ...],
    ) -> InputsDiff:
        request = sdk.DiffRequest(urn, id_, self._map(old_outputs), self._map(new_inputs), list(ignore_changes))
        return _diffed(self._call(self._provider.diff, request))

    def create(self, urn: str, inputs: Properties, timeout: float, preview: bool) -> Live:
        sent = self._map(inputs)
        answer = self._call(self._provider.create, sdk.CreateRequest(urn, dict(sent), timeout, preview))
        return Live(answer.resource_id or "", from_property_map(answer.properties))

    def read(self, urn: str, id_: str, inputs: Properties, outputs: Properties) -> Live:
        sent_inputs, sent_outputs = self._map(inputs), self._map(outputs)
        answer = self._call(self._provider.read, sdk.ReadRequest(urn, id_, dict(sent_outputs), dict(sent_inputs)))
        return Live(
            answer.resource_id or "",
            from_property_map(answer.properties),
            from_property_map(answer.inputs) if answer.inputs else None,
        )

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
    ) -> Live:
        sent = self._map(new_inputs)
        request = sdk.UpdateRequest(
            urn, id_, self._map(old_outputs), dict(sent), timeout, list(ignore_changes), preview
        )
        answer = self._call(self._provider.update, request)
        return Live(id_, from_property_map(answer.properties))

    def delete(self, urn: str, id_: str, old_inputs: Properties, outputs: Properties, timeout: float) -> None:
        self._call(self._provider.delete, sdk.DeleteRequest(urn, id_, self._map(outputs), timeout))

    def invoke(self, token: str, args: Properties) -> Invoked:
        sent = self._map(args)
        answer = self._call(self._provider.invoke, sdk.InvokeRequest(token, dict(sent)))
        failures = tuple((failure.property, failure.reason) for failure in answer.failures or ())
        return Invoked(from_property_map(answer.return_value), failures)

    def close(self) -> None:
        pass

    def _check(
        self, method: Callable[..., Any], urn: str, olds: Properties, news: Properties, seed: bytes
    ) -> CheckedInputs:
        sent = self._map(news)
        answer = self._call(method, sdk.CheckRequest(urn, self._map(olds), dict(sent), seed))
        failures = tuple((failure.property, failure.reason) for failure in answer.failures or ())
        return CheckedInputs(from_property_map(answer.inputs), failures)

    def _map(self, properties: Properties) -> dict[str, PropertyValue]:
        return to_property_map(properties if self._accept_secrets else without_secrets(properties))

    def _call(self, method: Callable[..., Any], request: Any) -> Any:
        try:
            answer = method(request)
            return _finished(answer) if isinstance(answer, Coroutine) else answer
        except NotImplementedError as error:
            raise ProviderFailed(f"the provider does not do this: {error}") from None
        except DeployerError as error:
            raise ProviderFailed(str(error)) from error
        except Exception as error:
            raise ProviderFailed(f"{type(error).__name__}: {error}") from error


def _finished(coroutine: Coroutine[Any, Any, Any]) -> Any:
    try:
        coroutine.send(None)
    except StopIteration as ended:
        return ended.value
    raise AssertionError("the provider waits")


def _diffed(answer: sdk.DiffResponse) -> InputsDiff:
    return InputsDiff(
        changes=answer.changes,
        replaces=tuple(answer.replaces),
        stables=tuple(answer.stables),
        delete_before_replace=bool(answer.delete_before_replace),
        diffs=tuple(answer.diffs),
        detailed={path: _KINDS[diff.kind] for path, diff in answer.detailed_diff.items()},
    )


def to_property_map(properties: Properties) -> dict[str, PropertyValue]:
    return {key: to_property(value) for key, value in properties.items()}


def to_property(value: Any) -> PropertyValue:
    if value is None or isinstance(value, str | bool):
        return PropertyValue(value)
    if isinstance(value, int | float):
        return PropertyValue(float(value))
    if isinstance(value, list):
        return PropertyValue([to_property(item) for item in value])
    match value.get(SIG):
        case None:
            return PropertyValue({key: to_property(item) for key, item in value.items()})
        case sig if sig == SECRET:
            return to_property(value.get("value", UNKNOWN)).with_secret(True)
        case sig if sig == ASSET:
            return PropertyValue(_asset(value))
        case sig if sig == ARCHIVE:
            return PropertyValue(_archive(value))
        case sig if sig == RESOURCE:
            id_ = value.get("id")
            return PropertyValue(
                ResourceReference(value["urn"], None if id_ is None else to_property(id_), value.get("packageVersion"))
            )
        case sig:
            raise ValueError(f"unknown signature {sig} in a property value")


def from_property_map(answer: Mapping[str, PropertyValue] | None) -> dict[str, Any]:
    return {key: from_property(value) for key, value in (answer or {}).items()}


def from_property(value: PropertyValue) -> Any:
    plain = _plain(value.value)
    return secret(plain) if value.is_secret else plain


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, float | int):
        return int(value) if -_EXACT < value < _EXACT and value == int(value) else value
    if isinstance(value, tuple | list):
        return [from_property(item) for item in value]
    if isinstance(value, Mapping):
        return {key: from_property(item) for key, item in value.items()}
    if isinstance(value, Computed):
        return UNKNOWN
    if isinstance(value, ResourceReference):
        reference: dict[str, Any] = {SIG: RESOURCE, "urn": value.urn}
        if value.resource_id is not None:
            reference["id"] = from_property(value.resource_id)
        if value.package_version is not None:
            reference["packageVersion"] = value.package_version
        return reference
    return _asset_values(value)


def _asset(value: Mapping[str, Any]) -> pulumi.Asset:
    if "text" in value:
        return pulumi.StringAsset(value["text"])
    return pulumi.FileAsset(value["path"]) if "path" in value else pulumi.RemoteAsset(value["uri"])


def _archive(value: Mapping[str, Any]) -> pulumi.Archive:
    if "assets" in value:
        return pulumi.AssetArchive(
            {name: _asset(item) if item[SIG] == ASSET else _archive(item) for name, item in value["assets"].items()}
        )
    return pulumi.FileArchive(value["path"]) if "path" in value else pulumi.RemoteArchive(value["uri"])


def _asset_values(value: Any) -> dict[str, Any]:
    sig = ASSET if isinstance(value, pulumi.Asset) else ARCHIVE
    for name in ("text", "path", "uri"):
        if isinstance(text := getattr(value, name, None), str):
            return hashed({SIG: sig, name: text})
    return hashed({SIG: ARCHIVE, "assets": {name: _asset_values(item) for name, item in value.assets.items()}})
