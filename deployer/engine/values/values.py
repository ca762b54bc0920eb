"""Property values in the engine's form: JSON values, with Pulumi's special objects as dicts with a signature key.

A secret is `{SIG: SECRET, "value": v}`, or `{SIG: SECRET, "ciphertext": c}` where it is sealed: a preview does not
decrypt stored secrets, so programs and providers see an unknown secret. An asset is `{SIG: ASSET, "text"|"path"|"uri":
…, "hash": …}`. A value that is unknown in a preview is the string `UNKNOWN`. This is the form of Pulumi's wire
protocol, so that a conversion is one pass in each direction; whole numbers become `int`, as in a checkpoint's JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf import struct_pb2

SIG = "4dabf18193072939515e22adb298388d"
SECRET = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 -- Pulumi's signature of a secret, the same everywhere
ASSET = "c44067f5952c0a294b673a41bacd8c17"
ARCHIVE = "0def7320c3a5731c473e5ecbe6d01bc7"
OUTPUT = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
BLINDED = "[secret]"

Properties = Mapping[str, Any]

_SIG_BYTES = SIG.encode()
_UNKNOWN_BYTES = UNKNOWN.encode()
_EXACT = 2**53  # whole floats below this are exact as integers


def from_struct(struct: struct_pb2.Struct) -> dict[str, Any]:
    """Returns a protobuf Struct as plain values; an output value becomes its content, which may be secret or
    unknown."""
    return {key: from_value(value) for key, value in struct.fields.items()}


def from_value(value: struct_pb2.Value) -> Any:
    match value.WhichOneof("kind"):
        case "string_value":
            return value.string_value
        case "number_value":
            number = value.number_value
            return int(number) if -_EXACT < number < _EXACT and number == int(number) else number
        case "bool_value":
            return value.bool_value
        case "struct_value":
            found = {key: from_value(item) for key, item in value.struct_value.fields.items()}
            return _plain_output(found) if found.get(SIG) == OUTPUT else found
        case "list_value":
            return [from_value(item) for item in value.list_value.values]
        case _:
            return None


def _plain_output(found: dict[str, Any]) -> Any:
    value = found.get("value", UNKNOWN)
    return secret(value) if found.get("secret") else value


def to_struct(properties: Properties) -> struct_pb2.Struct:
    struct = struct_pb2.Struct()
    fields = struct.fields
    for key, value in properties.items():
        _fill(fields[key], value)
    return struct


def _fill(target: struct_pb2.Value, value: Any) -> None:
    if isinstance(value, str):
        target.string_value = value
    elif isinstance(value, bool):
        target.bool_value = value
    elif isinstance(value, int | float):
        target.number_value = value
    elif value is None:
        target.null_value = struct_pb2.NULL_VALUE
    elif isinstance(value, Mapping):
        fields = target.struct_value.fields
        target.struct_value.SetInParent()
        for key, item in (value if not is_sealed(value) else secret_unknown()).items():
            _fill(fields[key], item)
    else:
        target.list_value.SetInParent()
        values = target.list_value.values
        for item in value:
            _fill(values.add(), item)


def has_special(struct: struct_pb2.Struct) -> bool:
    """Returns whether a Struct may contain secrets, assets, references or unknown values, by one search in its
    bytes."""
    data = struct.SerializeToString()
    return _SIG_BYTES in data or _UNKNOWN_BYTES in data


def secret(value: Any) -> Any:
    return value if is_secret(value) else {SIG: SECRET, "value": value}


def is_secret(value: Any) -> bool:
    return isinstance(value, dict) and value.get(SIG) == SECRET


def is_sealed(value: Any) -> bool:
    """Returns whether the value is a stored secret that was not decrypted."""
    return isinstance(value, dict) and value.get(SIG) == SECRET and "value" not in value


def secret_unknown() -> dict[str, Any]:
    """Returns an unknown secret, which programs and providers get for a sealed one."""
    return {SIG: SECRET, "value": UNKNOWN}


def contains_sealed(value: Any) -> bool:
    if isinstance(value, dict):
        return is_sealed(value) or any(contains_sealed(item) for item in value.values())
    return isinstance(value, list) and any(contains_sealed(item) for item in value)


def contains_secret(value: Any) -> bool:
    if isinstance(value, dict):
        return value.get(SIG) == SECRET or any(contains_secret(item) for item in value.values())
    return isinstance(value, list) and any(contains_secret(item) for item in value)


def contains_unknown(value: Any) -> bool:
    if isinstance(value, str):
        return value == UNKNOWN
    if isinstance(value, dict):
        return is_sealed(value) or any(contains_unknown(item) for item in value.values())
    return isinstance(value, list) and any(contains_unknown(item) for item in value)


def without_secrets(value: Any) -> Any:
    """Returns the value with every secret replaced by its plain value, for providers that do not take secrets."""
    return _replace_secrets(value, without_secrets, UNKNOWN)


def blinded(value: Any) -> Any:
    """Returns the value with every secret replaced by `[secret]`: the only form that is ever shown."""
    return _replace_secrets(value, lambda _: BLINDED, BLINDED)


def _replace_secrets(value: Any, put: Any, sealed: str) -> Any:
    if isinstance(value, dict):
        if value.get(SIG) == SECRET:
            return put(value["value"]) if "value" in value else sealed
        return {key: _replace_secrets(item, put, sealed) for key, item in value.items()}
    return [_replace_secrets(item, put, sealed) for item in value] if isinstance(value, list) else value


def keep_secrecy(new: Properties, known: Properties) -> dict[str, Any]:
    """Returns `new`; every property that is secret in `known` is secret again.

    A provider may answer with plain values for properties that it received as secrets.
    """
    out = dict(new)
    for key, value in known.items():
        if key not in out or is_secret(out[key]):
            continue
        if isinstance(value, dict) and SIG not in value and isinstance(out[key], dict):
            out[key] = keep_secrecy(out[key], value)
        elif not _is_as_secret(out[key], value):
            out[key] = secret(out[key])
    return out


def _is_as_secret(new: Any, known: Any) -> bool:
    """Returns whether all secrets in `known` are secret in `new`, at the same places."""
    if not contains_secret(known) or is_secret(new):
        return True
    if isinstance(known, list) and isinstance(new, list):
        return len(known) == len(new) and all(map(_is_as_secret, new, known))
    if isinstance(known, dict) and isinstance(new, dict) and SIG not in known:
        return all(key in new and _is_as_secret(new[key], item) for key, item in known.items())
    return False


def same(left: Any, right: Any) -> bool:
    """Returns whether two values are deeply equal.

    It distinguishes booleans from numbers (Python does not), and ignores whether values are secret. A sealed secret
    equals any value at its place, because it cannot be compared (`deployer.engine.providers.sealed`).
    """
    if is_sealed(left) or is_sealed(right):
        return True
    left = left.get("value") if is_secret(left) else left
    right = right.get("value") if is_secret(right) else right
    if isinstance(left, bool) != isinstance(right, bool):
        return False
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def changed_keys(old: Properties, new: Properties) -> dict[str, str]:
    """Returns the top-level properties that differ, each with `add`, `delete` or `update`."""
    kinds: dict[str, str] = {}
    for key in {**old, **new}:
        if key not in old:
            kinds[key] = "add"
        elif key not in new:
            kinds[key] = "delete"
        elif not same(old[key], new[key]):
            kinds[key] = "update"
    return kinds
