"""Conversions between the program's protobuf messages and the engine's values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import grpc
from pulumi.runtime.proto import resource_pb2

from deployer.engine.program.service import RefusedCall
from deployer.engine.steps.provider_steps import engine_inputs
from deployer.engine.values.assets import with_hashes
from deployer.engine.values.goal import Alias, Goal, RegistrationAnswer
from deployer.engine.values.urns import is_provider_type, is_reference, is_urn
from deployer.engine.values.values import contains_secret, from_struct, from_value, has_special, to_struct
from deployer.errors import InvalidInput
from deployer.platform.text.units import GO_DURATION, parse_duration


def goal_of(request: Any, require_secrets: Callable[[], None], folder: Path) -> Goal:
    """Returns the goal of a registration; calls `require_secrets` when the goal has a secret.

    `folder` is the program's folder, to which paths of assets are relative.
    """
    inputs = from_struct(request.object)
    if inputs and has_special(request.object):
        inputs = with_hashes(inputs, folder)
        if contains_secret(inputs):
            require_secrets()
    if request.additionalSecretOutputs:
        require_secrets()
    if is_provider_type(request.type):
        inputs = engine_inputs(inputs, request.version, request.pluginDownloadURL)
    return Goal(
        type=request.type,
        name=request.name,
        custom=request.custom,
        inputs=inputs,
        parent=request.parent,
        provider=request.provider,
        version=request.version,
        plugin_url=request.pluginDownloadURL,
        dependencies=tuple(sorted(request.dependencies)),
        property_dependencies={
            name: sorted(found.urns) for name, found in sorted(request.propertyDependencies.items()) if found.urns
        },
        protect=request.protect,
        retain_on_delete=request.retainOnDelete,
        delete_before_replace=request.deleteBeforeReplace if request.deleteBeforeReplaceDefined else None,
        ignore_changes=tuple(request.ignoreChanges),
        replace_on_changes=tuple(request.replaceOnChanges),
        additional_secret_outputs=tuple(request.additionalSecretOutputs),
        aliases=(*(_alias(alias) for alias in request.aliases), *(Alias(urn=urn) for urn in request.aliasURNs)),
        import_id=request.importId,
        custom_timeouts=_timeouts(request.customTimeouts) if request.HasField("customTimeouts") else {},
        deleted_with=request.deletedWith,
        replace_with=tuple(request.replace_with),
        replacement_trigger=from_value(request.replacement_trigger)
        if request.HasField("replacement_trigger")
        else None,
        position=_position(request),
    )


def check_urns(request: Any) -> None:
    """Raises InvalidInput for a request with a text that is not a URN in the place of one; the state could not store it
    either."""
    given: list[tuple[str, str]] = [(name, getattr(request, name, "")) for name in ("urn", "parent", "deletedWith")]
    for name in ("dependencies", "replace_with", "aliasURNs"):
        given += [(name, urn) for urn in getattr(request, name, ())]
    for found in getattr(request, "propertyDependencies", {}).values():
        given += [("propertyDependencies", urn) for urn in found.urns]
    for alias in getattr(request, "aliases", ()):
        given += [("aliases", alias.urn), ("aliases", alias.spec.parentUrn)]
    wrong = [(name, urn, "a URN") for name, urn in given if urn and not is_urn(urn)]
    if (provider := getattr(request, "provider", "")) and not is_reference(provider):
        wrong.append(("provider", provider, "a provider's URN and id"))
    for name, text, wanted in wrong:
        raise InvalidInput(
            f"the program gives {text[:100]!r} as `{name}`, which is not {wanted}",
            where=_position(request) or None,
            remedy="give a resource, or the URN that a resource has",
        )


def answer_of(registered: RegistrationAnswer) -> Any:
    """Returns the response to a registration; after a failed registration the SDK continues with unknown outputs."""
    answer = resource_pb2.RegisterResourceResponse(urn=registered.urn, id=registered.id, stables=registered.stables)
    if registered.failed:
        answer.result = resource_pb2.Result.FAIL
    else:
        answer.object.CopyFrom(to_struct(registered.outputs))
    return answer


def _alias(alias: Any) -> Alias:
    if alias.WhichOneof("alias") == "urn":
        return Alias(urn=alias.urn)
    spec = alias.spec
    return Alias(
        name=spec.name,
        type=spec.type,
        stack=spec.stack,
        project=spec.project,
        parent=spec.parentUrn,
        no_parent=spec.noParent,
    )


def _timeouts(found: Any) -> dict[str, float]:
    texts = {"create": found.create, "update": found.update, "delete": found.delete}
    return {name: timeout_seconds(text) for name, text in texts.items() if text}


def timeout_seconds(text: str) -> float:
    """Returns the seconds of a duration in Go's form: `5m`, `1h30m`, `1.5s`."""
    try:
        return parse_duration(text, GO_DURATION).total_seconds()
    except InvalidInput as error:
        raise RefusedCall(str(error), grpc.StatusCode.INVALID_ARGUMENT) from None


def _position(request: Any) -> str:
    found = getattr(request, "sourcePosition", None)
    if found is None or not found.uri:
        return ""
    return f"{unquote(urlparse(found.uri).path)}:{found.line}"
