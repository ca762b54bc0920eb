"""Values between runs of spaces and tabs, as one stream with a space between values."""

from __future__ import annotations

import gzip
import io
from typing import Any

import pytest

from deployer.errors import InvalidInput
from deployer.specs.model import TableSpec
from deployer.specs.types.parser import parse_type
from deployer.specs.types.types import Column
from deployer.tables.admin.tables import create_table
from deployer.tables.ingest.files.model import ReadOptions
from deployer.tables.ingest.files.space_separated import single_spaced, single_spaced_stream
from deployer.tables.ingest.files.text_blocks import LONGEST_LINE
from tests.tables.lakes import Lake

LINES: dict[str, tuple[bytes, bytes]] = {
    "runs": (b"a  b \t c\n", b"a b c\n"),
    "ends": (b"  a b  \n\ta\n", b"a b\na\n"),
    "windows": (b" a  b \r\n", b"a b\n"),
    "quotes": (b' "a  b"   "c ""d"""  \n', b'"a  b" "c ""d"""\n'),
    "lines-in-quotes": (b'"a \n  b"  c\n  d\n', b'"a \n  b" c\nd\n'),
    "a-quote-inside": (b"5'10\"   x\n6'2\"  y\n", b"5'10\" x\n6'2\" y\n"),
    "no-line-end": (b"a   b", b"a b"),
}


@pytest.mark.parametrize("case", LINES)
def test_runs_become_one_space(case: str) -> None:
    given, expected = LINES[case]
    assert single_spaced(given).replace(b"\r", b"") == expected


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_blocks_are_cut_where_no_value_is_open(size: int) -> None:
    class Slow(io.BytesIO):
        def read(self, wanted: Any = -1) -> bytes:
            return super().read(size)

    text = b"\xef\xbb\xbfx   y\n" + b' 1   "a  \n  b"\n 2  c\n' * 50
    assert single_spaced_stream(Slow(text), "t").read() == b"x y\n" + b'1 "a  \n  b"\n2 c\n' * 50


def test_a_quote_without_its_other_half_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deployer.tables.ingest.files.space_separated.LONGEST_LINE", 100)
    assert LONGEST_LINE > 100
    with pytest.raises(InvalidInput, match="a quote is not closed"):
        single_spaced_stream(io.BytesIO(b'a "b\n' * 101), "t").read()


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_is_loaded_in_several_parts(packed: bool, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deployer.tables.ingest.files.find.SPLIT_BYTES", 20_000)
    columns = (Column("id", parse_type("int64"), False), Column("text", parse_type("string")))
    create_table(lake.store, lake.root, TableSpec("air", "flights", columns), "tests/dev")
    text = "  id     text\n" + "".join(f"{number:>6}    v{number}\n" for number in range(5000))
    path = lake.text("in.csv", text)
    if packed:
        path = lake.folder / "in.csv.gz"
        path.write_bytes(gzip.compress(text.encode()))
    assert lake.ingest(path).rows == 5000
    assert lake.ingest(path, options=ReadOptions(delimiter="whitespace")).rows == 5000
    rows = lake.open().scan().to_table().to_pylist()
    assert len(rows) == 10_000 and all(row["text"] == f"v{row['id']}" for row in rows)


def test_long_rows_do_not_hide_the_header(lake: Lake) -> None:
    columns = (Column("id", parse_type("int64"), False), Column("text", parse_type("string")))
    create_table(lake.store, lake.root, TableSpec("air", "flights", columns), "tests/dev")
    assert lake.ingest(lake.text("in.csv", f"id,text\n1,{'x' * 1_200_000}\n2,y\n")).rows == 2
