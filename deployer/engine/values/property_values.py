"""Plain values to and from the SDK's `PropertyValue`, for providers that are called in this process.

What a provider is handed is what it gets over gRPC from the SDK's own server: a value that is not known yet is the
unknown sentinel as a string.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import pulumi
from pulumi.provider.experimental.property_value import Computed, PropertyValue, ResourceReference

from deployer.engine.values.values import ARCHIVE, ASSET, RESOURCE, SECRET, SIG, UNKNOWN, Properties, secret

_NULL, _TRUE, _FALSE = PropertyValue(None), PropertyValue(True), PropertyValue(False)
_EXACT = 2**53


@lru_cache(maxsize=16384)  # property values are immutable, and a stack repeats most of its strings and numbers
def _text(value: str) -> PropertyValue:
    return PropertyValue(value)


@lru_cache(maxsize=4096)
def _number(value: float) -> PropertyValue:
    return PropertyValue(value)


def to_property_map(properties: Properties) -> dict[str, PropertyValue]:
    return {key: to_property(value) for key, value in properties.items()}


def to_property(value: Any) -> PropertyValue:
    if isinstance(value, str):
        return _text(value) if len(value) < 256 else PropertyValue(value)
    if isinstance(value, bool):
        return _TRUE if value else _FALSE
    if isinstance(value, int | float):
        return _number(float(value))
    if value is None:
        return _NULL
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


def from_property_map(
    answer: Mapping[str, PropertyValue], sent: Mapping[str, PropertyValue], plain: Properties
) -> dict[str, Any]:
    """A provider's answer as plain values; what it hands back as it was sent is not converted again."""
    return {
        key: plain[key] if key in sent and sent[key] is value else from_property(value) for key, value in answer.items()
    }


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
    from deployer.engine.values.assets import hashed

    sig = ASSET if isinstance(value, pulumi.Asset) else ARCHIVE
    for name in ("text", "path", "uri"):
        if isinstance(text := getattr(value, name, None), str):
            return hashed({SIG: sig, name: text})
    return hashed({SIG: ARCHIVE, "assets": {name: _asset_values(item) for name, item in value.assets.items()}})
