from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from deployer.errors import InvalidInput
from deployer.specs.rules import Rule
from deployer.specs.types.parser import parse_type
from deployer.specs.types.types import Column
from deployer.specs.values.keys import key_kind, key_value, order_of
from deployer.state.model.keys import decode_key, encode_key

from .type_strategies import scalars


def column(text: str) -> Column:
    return Column("k", parse_type(text), nullable=False)


def micros(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp()) * 1_000_000


VALUES: dict[str, tuple[str, object, object]] = {
    "bool": ("bool", True, True),
    "integer": ("int8", -128, -128),
    "whole float": ("int32", 1e6, 1_000_000),
    "largest": ("uint64", 2**64 - 1, 2**64 - 1),
    "float": ("float64", 1.5, 1.5),
    "float of an integer": ("float64", 3, 3.0),
    "rounded float": ("float32", 0.1, 0.10000000149011612),
    "decimal": ("decimal128(5, 2)", 1.5, "1.50"),
    "decimal text": ("decimal128(5, 2)", "-0.5", "-0.50"),
    "decimal of hundreds": ("decimal128(5, -2)", 1200, "1200"),
    "text": ("string", "JFK", "JFK"),
    "text that looks like a number": ("string", "012", "012"),
    "bytes": ("binary", "00ff", b"\x00\xff"),
    "bytes of a size": ("fixed_size_binary[2]", "0aF0", b"\x0a\xf0"),
    "date": ("date32", "1970-01-11", 10),
    "date before the epoch": ("date32", "1969-12-31", -1),
    "date64": ("date64", "1970-01-02", 86_400_000),
    "time": ("time32[ms]", "00:00:01.25", 1250),
    "time of minutes": ("time64[us]", "01:00", 3_600_000_000),
    "timestamp": ("timestamp[s]", "1970-01-01T00:01:00", 60),
    "timestamp of a day": ("timestamp[ms]", "1970-01-02", 86_400_000),
    "timestamp of nanoseconds": ("timestamp[ns]", "1970-01-01 00:00:00.000000001", 1),
    "timestamp in its zone": ("timestamp[us, America/New_York]", "2013-02-01", micros("2013-02-01T00:00:00-05:00")),
    "timestamp in summer": ("timestamp[us, America/New_York]", "2013-07-01", micros("2013-07-01T00:00:00-04:00")),
    "timestamp with an offset": ("timestamp[us, UTC]", "2013-11-03T01:30-05:00", micros("2013-11-03T06:30:00Z")),
    "timestamp in UTC": ("timestamp[us, UTC]", "2013-07-01T12:00:00Z", micros("2013-07-01T12:00:00Z")),
    "timestamp in an offset": ("timestamp[s, +05:30]", "1970-01-01T05:30", 0),
    "duration": ("duration[s]", "2h", 7200),
    "duration in units": ("duration[ms]", 250, 250),
    "negative duration": ("duration[us]", "-1ms", -1000),
}  # fmt: skip


@pytest.mark.parametrize("case", VALUES)
def test_values_are_what_arrow_stores(case: str) -> None:
    text, written, expected = VALUES[case]
    value = key_value(column(text), written)
    assert value == expected
    assert type(value) is type(expected)
    assert encode_key([key_kind(column(text))], [value])


MISFITS: dict[str, tuple[str, object, str]] = {
    "text for a number": ("int64", "ten", "whole number"),
    "boolean for a number": ("int64", True, "whole number"),
    "fraction for an integer": ("int64", 1.5, "whole number"),
    "too large": ("uint8", 256, "0 to 255"),
    "too large for half": ("float16", 1e6, "smaller"),
    "not finite": ("float64", float("nan"), "finite"),
    "too many digits": ("decimal128(4, 2)", 100, "4 digits"),
    "digits after the point": ("decimal128(4, 2)", "0.001", "at most 2"),
    "no decimal": ("decimal128(4, 2)", "1e", "12.50"),
    "number for text": ("string", 10, '"10" in quotes'),
    "boolean for text": ("string", True, '"true" in quotes'),
    "number for a date": ("date32", 15000, "2013-01-31"),
    "no such day": ("date32", "2013-02-29", "2013-01-31"),
    "no such hour": ("time32[s]", "24:00", "13:30"),
    "finer than the unit": ("timestamp[ms]", "2013-01-01T00:00:00.0001", "whole ms"),
    "out of range": ("timestamp[ns]", "2500-01-01", "coarser"),
    "offset without a zone": ("timestamp[us]", "2013-01-01T00:00Z", "remove the offset"),
    "no such offset": ("timestamp[us, UTC]", "2013-01-01T00:00+25:00", "-05:00"),
    "skipped hour": ("timestamp[us, Europe/Berlin]", "2024-03-31T02:30", "before or after"),
    "doubled hour": ("timestamp[us, Europe/Berlin]", "2024-10-27T02:30", '+02:00" or "2024-10-27T02:30+01:00"'),
    "wrong size": ("fixed_size_binary[2]", "00", "4 hexadecimal"),
    "not hexadecimal": ("binary", "zz", "hexadecimal"),
    "no duration": ("duration[s]", "soon", "90s"),
    "finer duration": ("duration[s]", "1ms", "whole s"),
    "empty": ("string", None, "in quotes"),
}  # fmt: skip


@pytest.mark.parametrize("case", MISFITS)
def test_what_is_no_value_says_what_to_write(case: str) -> None:
    text, written, remedy = MISFITS[case]
    with pytest.raises(InvalidInput) as caught:
        key_value(column(text), written)
    assert remedy in caught.value.remedy


@given(scalars)
def test_key_kinds_are_those_of_the_state_store(column_type: object) -> None:
    found = Column("k", column_type, nullable=False)  # type: ignore[arg-type]
    try:
        kind = key_kind(found)
    except InvalidInput:
        return
    try:
        decode_key([kind], b"\x01")
    except InvalidInput as error:  # one byte may be too short for a value, of a kind that is known
        assert "cannot be a key" not in error.what


ORDERED = {
    "int16": st.integers(-(2**15), 2**15 - 1),
    "uint64": st.integers(0, 2**64 - 1),
    "float64": st.floats(allow_nan=False, allow_infinity=False),
    "float16": st.floats(allow_nan=False, allow_infinity=False, width=16),
    "decimal128(10, 2)": st.decimals(-(10**7), 10**7, places=2).map(str),
    "string": st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
    "binary": st.binary(max_size=3).map(bytes.hex),
    "date32": st.dates().map(date.isoformat),
    "timestamp[us, UTC]": st.integers(-(10**10), 10**10).map(
        lambda seconds: (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)).isoformat()
    ),
    "bool": st.booleans(),
}


@pytest.mark.parametrize("text", ORDERED)
def test_split_points_are_ordered_as_encoded_keys_are(text: str) -> None:
    found = column(text)
    kind = key_kind(found)

    @given(ORDERED[text], ORDERED[text])
    def check(first: object, second: object) -> None:
        one, two = key_value(found, first), key_value(found, second)
        before = order_of(found, one) < order_of(found, two)  # type: ignore[operator]
        assert before == (encode_key([kind], [one]) < encode_key([kind], [two]))

    check()


LOCAL = st.integers(-(10**10), 10**10).map(
    lambda seconds: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
)


@given(LOCAL.map(lambda at: at.replace(tzinfo=None)), st.sampled_from(["UTC", "America/New_York", "Asia/Kolkata"]))
def test_local_times_are_those_of_arrow(local: datetime, zone: str) -> None:
    found = column(f"timestamp[us, {zone}]")
    try:
        value = key_value(found, local.isoformat())
    except InvalidInput:
        assume(False)
    shown = pa.array([value], pa.timestamp("us", zone))
    assert shown.to_pylist()[0].replace(tzinfo=None) == local


def test_rules_of_values_are_rules() -> None:
    assert {Rule.SPLIT_TYPE, Rule.SPLIT_RANGE} <= set(Rule)
