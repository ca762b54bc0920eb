"""Encoded keys: row-key tuples as bytes whose order is the order of the tuples ("memcomparable").

The bytes of values compare as the values do, and the bytes of one value are never a prefix of those of another. A key
is the concatenation of the bytes of its values. So a prefix of a tuple is a prefix of its bytes and sorts before all
its extensions, and ranges of keys can be compared without their types. Strings are ordered by their UTF-8 bytes, false
comes before true, and numbers and times are ordered by value. For floats, -0.0 and 0.0 are the same key, and NaN is one
key above all others.

A *kind* is the canonical text of a column type (`int64`, `timestamp[us, UTC]`, `decimal128(10, 2)`, `string`). Values
are Python's bool, int, float, str and bytes. Dates, times, timestamps and durations are the integers that Arrow stores.
Decimals are strings (`"12.50"`).
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, InvalidOperation
from functools import cache

from deployer.errors import InvalidInput

KeyValue = bool | int | float | str | bytes

_END, _ESCAPED_ZERO = b"\x00\x01", b"\x00\xff"  # the end of a value sorts below any continuation of the value

_SIGNED = {
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "date32": 4,
    "date64": 8,
    "time32": 4,
    "time64": 8,
    "timestamp": 8,
    "duration": 8,
}
_UNSIGNED = {"uint8": 1, "uint16": 2, "uint32": 4, "uint64": 8}
_DECIMALS = {"decimal32": 4, "decimal64": 8, "decimal128": 16, "decimal256": 32}
_FLOATS = {"float16": (">e", 2), "float32": (">f", 4), "float64": (">d", 8)}
_STRINGS = frozenset({"string", "large_string"})
_BINARIES = frozenset({"binary", "large_binary"})


@dataclass(frozen=True, slots=True)
class _Coding:
    """The encoding of one kind. `read` returns the value at a position of a key, and the position after the value."""

    write: Callable[[KeyValue], bytes]
    read: Callable[[bytes, int], tuple[KeyValue, int]]


def encode_value(kind: str, value: KeyValue) -> bytes:
    """Returns the bytes of one value. Raises InvalidInput for a value that the kind does not have."""
    return _coding(kind).write(value)


def encode_nullable(kind: str, value: KeyValue | None) -> bytes:
    """Returns the bytes of one value that may be null (None). Null sorts above all other values."""
    return b"\x01" if value is None else b"\x00" + encode_value(kind, value)


def encode_key(kinds: Sequence[str], values: Sequence[KeyValue]) -> bytes:
    """Returns an encoded key, or a prefix of keys if there are fewer values than kinds. Raises InvalidInput for more
    values than kinds and for a value that its kind does not have."""
    if len(values) > len(kinds):
        raise InvalidInput(
            f"a key of {len(values)} values for {len(kinds)} row keys", remedy="give at most one for each"
        )
    return b"".join(_coding(kind).write(value) for kind, value in zip(kinds, values, strict=False))


def decode_key(kinds: Sequence[str], data: bytes) -> tuple[KeyValue, ...]:
    """Returns the values of an encoded key or prefix. Raises InvalidInput for bytes that are not a key of these
    kinds."""
    values, at = [], 0
    for kind in kinds:
        if at == len(data):
            break
        value, at = _coding(kind).read(data, at)
        values.append(value)
    if at != len(data):
        raise InvalidInput(f"an encoded key has {len(data) - at} bytes more than its {len(kinds)} row keys")
    return tuple(values)


def successor(prefix: bytes) -> bytes | None:
    """Returns the smallest bytes that are above all bytes with this prefix; None if such bytes do not exist."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else None


@cache
def _coding(kind: str) -> _Coding:
    match = re.fullmatch(r"(\w+)(?:[\[(](.*)[\])])?", kind.strip())
    name, args = (match[1], match[2] or "") if match else (kind, "")
    if name == "bool":
        return _Coding(_write_bool, _fixed(1, lambda data: data == b"\x01"))
    if name in _SIGNED:
        return _integers(kind, _SIGNED[name], signed=True)
    if name in _UNSIGNED:
        return _integers(kind, _UNSIGNED[name], signed=False)
    if name in _FLOATS:
        return _floats(kind, *_FLOATS[name])
    if name in _STRINGS:
        return _Coding(_write_string, _read_string)
    if name in _BINARIES:
        return _Coding(lambda value: _escaped(_bytes(kind, value)), _read_escaped)
    if name == "fixed_size_binary":
        return _fixed_binary(kind, int(args))
    if name in _DECIMALS:
        precision, scale = (int(arg) for arg in args.split(","))
        return _decimals(kind, _DECIMALS[name], precision, scale)
    raise InvalidInput(
        f"a column of type {kind} cannot be a key",
        remedy="use booleans, numbers, strings, binary, dates, times, timestamps or durations",
    )


def _fixed(size: int, convert: Callable[[bytes], KeyValue]) -> Callable[[bytes, int], tuple[KeyValue, int]]:
    def read(data: bytes, at: int) -> tuple[KeyValue, int]:
        if at + size > len(data):
            raise InvalidInput("an encoded key ends within a value")
        return convert(data[at : at + size]), at + size

    return read


def _write_bool(value: KeyValue) -> bytes:
    if not isinstance(value, bool):
        raise _misfit("bool", value)
    return b"\x01" if value else b"\x00"


def _integers(kind: str, size: int, *, signed: bool) -> _Coding:
    bias = 1 << (8 * size - 1) if signed else 0  # maps the smallest value to 0

    def write(value: KeyValue) -> bytes:
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value + bias < 1 << 8 * size:
            raise _misfit(kind, value)
        return (value + bias).to_bytes(size, "big")

    return _Coding(write, _fixed(size, lambda data: int.from_bytes(data, "big") - bias))


def _floats(kind: str, layout: str, size: int) -> _Coding:
    sign, mask = 1 << (8 * size - 1), (1 << 8 * size) - 1

    def write(value: KeyValue) -> bytes:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _misfit(kind, value)
        if math.isnan(value):
            return b"\xff" * size  # decodes to a NaN, and sorts above infinity
        try:
            bits = int.from_bytes(struct.pack(layout, value + 0.0), "big")  # -0.0 + 0.0 is 0.0
        except (OverflowError, struct.error):
            raise _misfit(kind, value) from None
        return (bits ^ mask if bits & sign else bits | sign).to_bytes(size, "big")

    def convert(data: bytes) -> float:
        bits = int.from_bytes(data, "big")
        plain = bits ^ sign if bits & sign else bits ^ mask
        value: float = struct.unpack(layout, plain.to_bytes(size, "big"))[0]
        return value

    return _Coding(write, _fixed(size, convert))


def _write_string(value: KeyValue) -> bytes:
    if not isinstance(value, str):
        raise _misfit("string", value)
    try:
        return _escaped(value.encode())
    except UnicodeEncodeError:
        raise _misfit("string", value) from None


def _read_string(data: bytes, at: int) -> tuple[KeyValue, int]:
    raw, at = _read_escaped(data, at)
    try:
        return raw.decode(), at
    except UnicodeDecodeError:
        raise InvalidInput("an encoded key holds a string that is not UTF-8") from None


def _escaped(raw: bytes) -> bytes:
    return raw.replace(b"\x00", _ESCAPED_ZERO) + _END


def _read_escaped(data: bytes, at: int) -> tuple[bytes, int]:
    end = at
    while (end := data.find(b"\x00", end)) >= 0:
        suffix = data[end : end + 2]
        if suffix == _END:
            return data[at:end].replace(_ESCAPED_ZERO, b"\x00"), end + 2
        if suffix != _ESCAPED_ZERO:
            break
        end += 2
    raise InvalidInput("an encoded key ends within a value")


def _bytes(kind: str, value: KeyValue) -> bytes:
    if not isinstance(value, bytes):
        raise _misfit(kind, value)
    return value


def _fixed_binary(kind: str, size: int) -> _Coding:
    def write(value: KeyValue) -> bytes:
        raw = _bytes(kind, value)
        if len(raw) != size:
            raise _misfit(kind, value)
        return raw

    return _Coding(write, _fixed(size, lambda data: data))


def _decimals(kind: str, size: int, precision: int, scale: int) -> _Coding:
    exact = Context(prec=precision + 2)
    whole = _integers(kind, size, signed=True)

    def write(value: KeyValue) -> bytes:
        try:
            if not isinstance(value, str) and type(value) is not int:
                raise _misfit(kind, value)
            unscaled = int(Decimal(value).scaleb(scale, exact))
        except (InvalidOperation, ValueError, OverflowError):
            raise _misfit(kind, value) from None
        if (
            exact.compare(Decimal(value), Decimal(unscaled).scaleb(-scale, exact)) != 0
            or abs(unscaled) >= 10**precision
        ):
            raise _misfit(kind, value)
        return whole.write(unscaled)

    def read(data: bytes, at: int) -> tuple[KeyValue, int]:
        unscaled, at = whole.read(data, at)
        return format(Decimal(int(unscaled)).scaleb(-scale, exact), "f"), at

    return _Coding(write, read)


def _misfit(kind: str, value: object) -> InvalidInput:
    return InvalidInput(f"{value!r} is not a value of {kind}", remedy="give a value of the row key's type")
