"""The provider: each request is handed to the kind of its type. A type or property outside of `KINDS` fails."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import pulumi
from botocore.exceptions import ClientError
from pulumi.provider.experimental import provider as sdk
from pulumi.provider.experimental.property_value import Computed, PropertyValue
from pulumi.provider.experimental.server import main

from tests.aws_provider import (
    budgets,
    dynamodb,
    emr,
    emr_serverless,
    events,
    glue,
    iam,
    kms,
    logs,
    s3,
    s3_objects,
    scheduler,
    sqs,
    watching,
)
from tests.aws_provider.kinds import Kind, Values, misfits

_PARTS = (
    budgets,
    s3,
    s3_objects,
    dynamodb,
    iam,
    kms,
    emr,
    emr_serverless,
    logs,
    scheduler,
    sqs,
    watching,
    events,
    glue,
)
KINDS: Mapping[str, Kind] = {type_: kind for part in _PARTS for type_, kind in part.KINDS.items()}
UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"


class AwsProvider(sdk.Provider):
    """Credentials, region and endpoints are those of boto3's environment."""

    async def check_config(self, request: sdk.CheckRequest) -> sdk.CheckResponse:
        unknown = [name for name in request.new_inputs if name != "region"]
        failures = [sdk.CheckFailure(name, "the provider for tests does not have this setting") for name in unknown]
        return sdk.CheckResponse(request.new_inputs, failures)

    async def configure(self, request: sdk.ConfigureRequest) -> sdk.ConfigureResponse:
        return sdk.ConfigureResponse(accept_secrets=False, accept_outputs=False, supports_preview=True)

    async def check(self, request: sdk.CheckRequest) -> sdk.CheckResponse:
        kind, news = _kind(request.urn), _plain(request.new_inputs)
        failures = [*misfits(_known(news), kind.shape)]
        failures += [(name, "is needed") for name in kind.needed if name not in news]
        inputs = news if failures or _has_unknown(news) else kind.canonical(dict(news))
        return sdk.CheckResponse(_wired(inputs), [sdk.CheckFailure(*failure) for failure in failures])

    async def diff(self, request: sdk.DiffRequest) -> sdk.DiffResponse:
        kind, olds, news = _kind(request.urn), _plain(request.old_state), _plain(request.new_inputs)
        kinds = sdk.PropertyDiffKind
        detailed, replaces = {}, []
        for name in kind.shape:
            if name in request.ignore_changes or not _differs(kind, name, olds, news):
                continue
            found = kinds.ADD if name not in olds else kinds.DELETE if name not in news else kinds.UPDATE
            detailed[name] = sdk.PropertyDiff(found, True)
            if any(_at(olds, path) != _at(news, path) for path in kind.replaces if path.split(".")[0] == name):
                replaces.append(name)
        return sdk.DiffResponse(bool(detailed), replaces, [], bool(replaces), list(detailed), detailed)

    async def create(self, request: sdk.CreateRequest) -> sdk.CreateResponse:
        kind, inputs = _kind(request.urn), _plain(request.properties)
        if request.preview:
            return sdk.CreateResponse("", _wired({**inputs, **dict.fromkeys(kind.computed, UNKNOWN)}))
        client = kind.client(inputs)
        id_ = _told(request.urn, kind.create, client, inputs)
        return sdk.CreateResponse(id_, _wired(_outputs(kind, client, id_, inputs)))

    async def read(self, request: sdk.ReadRequest) -> sdk.ReadResponse:
        kind, inputs = _kind(request.urn), _plain(request.inputs)
        found = _told(request.urn, kind.read, kind.client(inputs), request.resource_id, inputs)
        if found is None:
            return sdk.ReadResponse(None, {}, {})
        return sdk.ReadResponse(
            request.resource_id, _wired({**found.inputs, **found.computed}), _wired(dict(found.inputs))
        )

    async def update(self, request: sdk.UpdateRequest) -> sdk.UpdateResponse:
        kind, olds, news = _kind(request.urn), _plain(request.olds), _plain(request.news)
        if request.preview:
            return sdk.UpdateResponse(_wired({**olds, **news}))
        client = kind.client(news)
        _told(request.urn, kind.update, client, request.resource_id, olds, news)
        return sdk.UpdateResponse(_wired(_outputs(kind, client, request.resource_id, news)))

    async def delete(self, request: sdk.DeleteRequest) -> None:
        kind, outputs = _kind(request.urn), _plain(request.properties)
        _told(request.urn, kind.delete, kind.client(outputs), request.resource_id, outputs)


def _differs(kind: Kind, name: str, olds: Values, news: Values) -> bool:
    if name in kind.differs and name in olds and name in news:
        return kind.differs[name](olds, news)
    return bool(olds.get(name) != news.get(name))


def _kind(urn: str) -> Kind:
    type_ = urn.split("::", 3)[2].rsplit("$", 1)[-1]
    if type_ not in KINDS:
        raise ValueError(f"the provider for tests does not have the type {type_}")
    return KINDS[type_]


def _at(values: Values, path: str) -> Any:
    found: Any = values
    for name in path.split("."):
        found = found.get(name, {})
    return found


def _outputs(kind: Kind, client: Any, id_: str, inputs: Values) -> dict[str, Any]:
    found = kind.read(client, id_, inputs)
    assert found is not None, f"{id_} was not there after it was made"
    assert dict(found.inputs) == dict(inputs), f"asked for {inputs}, found {found.inputs}"
    return {**inputs, **found.computed}


def _told(urn: str, call: Any, *arguments: Any) -> Any:
    """The call's answer; an error of AWS as the official provider has it, with the resource and the operation."""
    try:
        return call(*arguments)
    except ClientError as error:
        raise ValueError(f"{urn.rpartition('::')[2]}: {error}") from None


def _has_unknown(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_unknown, value.values()))
    if isinstance(value, list):
        return any(map(_has_unknown, value))
    return bool(value == UNKNOWN)


def _known(values: Values) -> Values:
    return {name: value for name, value in values.items() if not _has_unknown(value)}


def _plain(properties: Mapping[str, PropertyValue]) -> dict[str, Any]:
    return {key: _plain_value(value) for key, value in properties.items() if value.value is not None}


def _plain_value(value: PropertyValue) -> Any:
    match value.value:
        case None | str() | bool() | pulumi.FileAsset() as plain:
            return plain
        case float() | int() as number:
            return int(number) if number == int(number) else number
        case Computed():
            return UNKNOWN
        case Mapping() as mapping:
            return _plain(mapping)
        case items:
            return [_plain_value(item) for item in items]  # type: ignore[union-attr]


def _wired(plain: Mapping[str, Any]) -> dict[str, PropertyValue]:
    return {key: _wire(value) for key, value in plain.items()}


def _wire(value: Any) -> PropertyValue:
    if isinstance(value, Mapping):
        return PropertyValue(_wired(value))
    if isinstance(value, list | tuple):
        return PropertyValue([_wire(item) for item in value])
    return PropertyValue(float(value) if isinstance(value, int) and not isinstance(value, bool) else value)


def run() -> None:
    """Serves until it is ended; the arguments are the process's own."""
    main(sys.argv[1:], "7.51.1", AwsProvider())


if __name__ == "__main__":
    run()
