"""Encoded keys: the order of the bytes is the order of the tuples, and nothing is lost."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployer.errors import InvalidInput
from deployer.state.model.keys import decode_key, encode_key, encode_value, successor


def _decimal_text(precision: int, scale: int) -> st.SearchStrategy[str]:
    largest = 10**precision - 1
    return st.integers(-largest, largest).map(lambda n: format(Decimal(n).scaleb(-scale, Context(prec=precision)), "f"))


def _utf8(value: str) -> bytes:
    return value.encode()


def _float_order(value: float) -> tuple[bool, float]:
    return (True, 0.0) if math.isnan(value) else (False, value)


def _signed(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


_TEXT = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("\x00\x01\xff"), max_size=6)
_BINARY = st.binary(max_size=6) | st.lists(st.sampled_from([0, 1, 254, 255]), max_size=6).map(bytes)

KINDS: dict[str, tuple[st.SearchStrategy[Any], Callable[[Any], Any]]] = {
    "bool": (st.booleans(), bool),
    "int8": (_signed(8), int),
    "int16": (_signed(16), int),
    "int32": (_signed(32), int),
    "int64": (_signed(64), int),
    "uint8": (st.integers(0, 2**8 - 1), int),
    "uint16": (st.integers(0, 2**16 - 1), int),
    "uint32": (st.integers(0, 2**32 - 1), int),
    "uint64": (st.integers(0, 2**64 - 1), int),
    "float16": (st.floats(width=16), _float_order),
    "float32": (st.floats(width=32), _float_order),
    "float64": (st.floats(), _float_order),
    "string": (_TEXT, _utf8),
    "large_string": (_TEXT, _utf8),
    "binary": (_BINARY, bytes),
    "large_binary": (_BINARY, bytes),
    "fixed_size_binary[3]": (st.binary(min_size=3, max_size=3), bytes),
    "date32": (_signed(32), int),
    "date64": (_signed(64), int),
    "time32[ms]": (_signed(32), int),
    "time64[us]": (_signed(64), int),
    "timestamp[us, UTC]": (_signed(64), int),
    "duration[ns]": (_signed(64), int),
    "decimal128(10, 2)": (_decimal_text(10, 2), Decimal),
    "decimal128(38, 0)": (_decimal_text(38, 0), Decimal),
    "decimal256(76, 40)": (_decimal_text(76, 40), Decimal),
}


@st.composite
def _two_keys(draw: st.DrawFn) -> tuple[list[str], list[Any], list[Any]]:
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=3))
    first = [draw(KINDS[kind][0]) for kind in kinds[: draw(st.integers(0, len(kinds)))]]
    second = [draw(KINDS[kind][0]) for kind in kinds[: draw(st.integers(0, len(kinds)))]]
    if draw(st.booleans()):  # equal beginnings are where orders go wrong
        shared = draw(st.integers(0, min(len(first), len(second))))
        second[:shared] = first[:shared]
    return kinds, first, second


def _comparable(kinds: list[str], values: list[Any]) -> list[Any]:
    return [KINDS[kind][1](value) for kind, value in zip(kinds, values, strict=False)]


@given(_two_keys())
def test_bytes_order_as_tuples_do(keys: tuple[list[str], list[Any], list[Any]]) -> None:
    kinds, first, second = keys
    left, right = encode_key(kinds, first), encode_key(kinds, second)
    a, b = _comparable(kinds, first), _comparable(kinds, second)
    assert ((left > right) - (left < right)) == ((a > b) - (a < b))


@given(_two_keys())
def test_decoding_gives_the_values_back(keys: tuple[list[str], list[Any], list[Any]]) -> None:
    kinds, values, _ = keys
    assert _comparable(kinds, list(decode_key(kinds, encode_key(kinds, values)))) == _comparable(kinds, values)


@given(_two_keys())
def test_a_prefix_bounds_exactly_its_extensions(keys: tuple[list[str], list[Any], list[Any]]) -> None:
    kinds, values, other = keys
    prefix, key = encode_key(kinds, values), encode_key(kinds, other)
    upper = successor(prefix)
    inside = prefix <= key and (upper is None or key < upper)
    assert inside == (_comparable(kinds, other)[: len(values)] == _comparable(kinds, values))


@given(st.binary(max_size=4), st.binary(max_size=4))
def test_successor_is_above_all_that_starts_so_and_nothing_else(prefix: bytes, tail: bytes) -> None:
    upper = successor(prefix)
    assert upper is None or prefix + tail < upper
    assert upper is None or not upper.startswith(prefix) or not prefix
    assert (upper is None) == (prefix.strip(b"\xff") == b"")


# What is stored must never change: these bytes are in users' state stores.
GOLDEN = [
    ("bool", True, "01"),
    ("int8", -1, "7f"),
    ("int32", 1, "80000001"),
    ("int64", -(2**63), "0000000000000000"),
    ("uint16", 258, "0102"),
    ("float64", 1.0, "bff0000000000000"),
    ("float64", -1.0, "400fffffffffffff"),
    ("float64", -0.0, "8000000000000000"),
    ("float32", math.inf, "ff800000"),
    ("float32", math.nan, "ffffffff"),
    ("string", "", "0001"),
    ("string", "a\x00b", "6100ff620001"),
    ("string", "é", "c3a90001"),
    ("binary", b"\x00\xff", "00ffff0001"),
    ("fixed_size_binary[2]", b"\x00\x01", "0001"),
    ("date32", 0, "80000000"),
    ("timestamp[us, UTC]", 1, "8000000000000001"),
    ("decimal128(4, 2)", "1.5", "80000000000000000000000000000096"),
    ("decimal128(4, 2)", "-0.01", "7fffffffffffffffffffffffffffffff"),
]


@pytest.mark.parametrize(("kind", "value", "expected"), GOLDEN, ids=[f"{kind} {value!r}" for kind, value, _ in GOLDEN])
def test_the_encoding_is_stable(kind: str, value: Any, expected: str) -> None:
    assert encode_value(kind, value).hex() == expected


MISFITS: list[tuple[str, Any]] = [
    ("bool", 1),
    ("int8", 128),
    ("int64", True),
    ("int32", "1"),
    ("uint8", -1),
    ("float64", "1.0"),
    ("float32", 1e300),
    ("string", b"a"),
    ("string", "\ud800"),
    ("binary", "a"),
    ("fixed_size_binary[2]", b"a"),
    ("decimal128(4, 2)", "1.234"),
    ("decimal128(4, 2)", "100.00"),
    ("decimal128(4, 2)", "abc"),
    ("decimal128(4, 2)", "NaN"),
    ("decimal128(4, 2)", "Infinity"),
    ("decimal128(4, 2)", 1.5),
]


@pytest.mark.parametrize(("kind", "value"), MISFITS, ids=[f"{kind} {value!r}" for kind, value in MISFITS])
def test_a_value_of_another_type_is_refused_in_words(kind: str, value: Any) -> None:
    with pytest.raises(InvalidInput, match="is not a value of"):
        encode_value(kind, value)


BROKEN = [
    (["int32"], b"\x00", "ends within a value"),
    (["string"], b"abc", "ends within a value"),
    (["string"], b"a\x00\x02", "ends within a value"),
    (["string"], b"\xff\x00\x01", "not UTF-8"),
    (["bool"], b"\x00\x00", "1 bytes more"),
]


@pytest.mark.parametrize(("kinds", "data", "words"), BROKEN, ids=[f"{k} {d.hex()}" for k, d, _ in BROKEN])
def test_bytes_that_are_no_key_are_refused_in_words(kinds: list[str], data: bytes, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        decode_key(kinds, data)


def test_a_key_longer_than_the_row_keys_is_refused() -> None:
    with pytest.raises(InvalidInput, match="a key of 2 values for 1 row keys"):
        encode_key(["int32"], [1, 2])


@pytest.mark.parametrize("kind", ["list<int32>", "struct<a: int32>", "null", "dictionary<int32, string>", ""])
def test_types_without_an_order_cannot_be_keys(kind: str) -> None:
    with pytest.raises(InvalidInput, match="cannot be a key"):
        encode_value(kind, 1)


def test_floats_of_any_sign_sort_as_numbers_with_nan_last() -> None:
    values = [math.nan, 1.0, -math.inf, 0.0, math.inf, -1.0]
    ordered = sorted(values, key=lambda value: encode_value("float64", value))
    assert [str(value) for value in ordered] == ["-inf", "-1.0", "0.0", "1.0", "inf", "nan"]
