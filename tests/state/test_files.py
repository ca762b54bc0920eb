"""A collection of files behaves as a plain list of them would, however it is split into segments and overlay."""

from __future__ import annotations

from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deployer.state.model.files import files as files_module
from deployer.state.model.files.data_file import File
from deployer.state.model.files.files import Files

from .samples import file

KEYS = st.binary(min_size=1, max_size=2)


@st.composite
def _file(draw: st.DrawFn, fragment_id: int) -> File:
    partition = draw(st.sampled_from([None, "p1", "p2", "p3"]))
    rows, size = draw(st.integers(0, 100)), draw(st.integers(0, 100))
    if draw(st.booleans()) and draw(st.booleans()):
        return File(fragment_id, partition, rows, size)
    first, second = sorted([draw(KEYS), draw(KEYS)])
    third, fourth = sorted([draw(KEYS), draw(KEYS)])
    clustered = draw(st.sampled_from([("", (), ()), ("zorder:1,2", (third, first), (fourth, second))]))
    in_order = draw(st.booleans())
    return File(
        fragment_id, partition, rows, size, first, second, (first, third), (second, fourth), in_order, *clustered
    )


@st.composite
def _changes(draw: st.DrawFn) -> tuple[Files, dict[int, File]]:
    """Files after some changes, and the same in a dict."""
    files, model = Files(), dict[int, File]()
    for _ in range(draw(st.integers(0, 8))):
        removed = draw(st.lists(st.sampled_from(sorted(model)), unique=True, max_size=5)) if model else []
        free = [number for number in range(40) if number not in model or number in removed]
        ids = draw(st.lists(st.sampled_from(free), unique=True, max_size=8))
        put = [draw(_file(number)) for number in ids]
        files = files.changed(put, removed)
        for number in removed:
            del model[number]
        model.update({each.fragment_id: each for each in put})
    return files, model


@pytest.mark.thinned(2, to="full")
@pytest.mark.parametrize("limit", [0, 3, 1000])
@settings(max_examples=40)
@given(data=st.data())
def test_files_are_those_of_a_dict(limit: int, data: st.DataObject) -> None:
    with patch.object(files_module, "OVERLAY_LIMIT", limit):
        files, model = data.draw(_changes())
    expected = [model[number] for number in sorted(model)]
    assert list(files) == expected
    assert (files.count, files.rows, files.bytes) == (
        len(expected),
        sum(each.rows for each in expected),
        sum(each.bytes for each in expected),
    )
    assert [files.get(number) for number in range(41)] == [model.get(number) for number in range(41)]
    assert files.missing(range(41)) == tuple(number for number in range(41) if number not in model)
    for partition in (None, "p1", "p2", "p3", "p4"):
        assert files.for_partition(partition) == [each for each in expected if each.partition == partition]
    lower, upper = data.draw(KEYS | st.just(b"")), data.draw(st.none() | KEYS)
    assert files.overlapping(lower, upper) == [each for each in expected if each.overlaps(lower, upper)]
    ranges = data.draw(st.dictionaries(st.integers(0, 1), st.tuples(st.none() | KEYS, st.none() | KEYS)))
    assert files.overlapping_columns(ranges, lower, upper) == [
        each for each in expected if each.overlaps(lower, upper) and each.overlaps_columns(ranges)
    ]
    assert Files.from_arrow(files.to_arrow(), in_order=True) == files
    assert Files(model.values()) == files


# File [low, high], both inclusive, against range [lower, upper).
RANGES = [
    ("inside", b"e", b"f", True),
    ("touching its last key", b"m", b"z", True),
    ("just above its last key", b"m\x00", b"z", False),
    ("ending at its first key", b"", b"d", False),
    ("ending just above its first key", b"", b"d\x00", True),
    ("open above", b"e", None, True),
    ("all", b"", None, True),
]


@pytest.mark.parametrize(("lower", "upper", "expected"), [r[1:] for r in RANGES], ids=[r[0] for r in RANGES])
def test_what_overlaps(lower: bytes, upper: bytes | None, expected: bool) -> None:
    assert file(1, b"d", b"m").overlaps(lower, upper) == expected


def test_a_file_of_unknown_range_always_matches() -> None:
    unknown = file(1, None, None)
    assert Files([unknown]).overlapping(b"x", b"y") == [unknown]
    assert Files([unknown]).overlapping_columns({0: (b"x", b"y")}) == [unknown]


def test_a_state_keeps_its_files_while_others_are_made_from_it() -> None:
    with patch.object(files_module, "OVERLAY_LIMIT", 4):
        before = Files(file(number) for number in range(10))
        one, other = before.changed([file(10)], [1]), before.changed([file(11)], [2])
    assert [each.fragment_id for each in before] == list(range(10))
    assert [each.fragment_id for each in one] == [0, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    assert [each.fragment_id for each in other] == [0, 1, 3, 4, 5, 6, 7, 8, 9, 11]


def test_a_key_range_is_found_among_very_many_files() -> None:
    count = 50_000
    keys = [number.to_bytes(4, "big") for number in range(count)]
    ids = pa.array(range(count), pa.int64())
    none = pa.array([[]] * count, pa.list_(pa.binary()))
    columns = {
        "fragment_id": ids,
        "partition": pa.array(["p"] * count).dictionary_encode(),
        "rows": ids,
        "bytes": ids,
        "min_key": pa.array(keys, pa.binary()),
        "max_key": pa.array(keys, pa.binary()),
        "column_min": none,
        "column_max": none,
        "sorted": pa.array([True] * count),
    }
    files = Files.from_arrow(pa.table(columns))
    for start, end in [(0, 3), (4095, 4097), (20_000, 20_010), (49_998, 50_000)]:
        upper = keys[end] if end < count else None
        assert [each.fragment_id for each in files.overlapping(keys[start], upper)] == list(range(start, end))
    # One file over everything is found from anywhere.
    wide = files.changed([file(count, b"", b"\xff")])
    assert [each.fragment_id for each in wide.overlapping(keys[30_000], keys[30_001])] == [30_000, count]
