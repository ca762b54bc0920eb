"""How text files are read: their encoding, compression, delimiter and header line."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deployer.errors import InvalidInput
from deployer.tables.ingest.files.model import Format, ReadOptions
from tests.tables.lakes import Lake

ENGINES = ["driver", pytest.param("spark", marks=pytest.mark.spark)]
NAMES = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.string())])
CSV = "id,name\n1,café\n2,Łódź\n"
LATIN = "id,name\n1,café\n2,Málaga\n"
JSON = '{"id": 1, "name": "café"}\n{"id": 2, "name": "Łódź"}\n'


@pytest.fixture
def engine(request: Any) -> Any:
    if request.param == "spark":
        request.getfixturevalue("spark")
    return request.param


def zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return bytes(sink.getvalue())


def loaded(lake: Lake) -> list[Any]:
    return sorted(lake.open().scan().to_table().column("name").to_pylist())


def file(lake: Lake, name: str, data: bytes) -> Path:
    path = lake.folder / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
@pytest.mark.parametrize(
    ("name", "data", "encoding"),
    [
        pytest.param("a.csv", LATIN.encode("latin-1"), "latin-1", id="latin-1"),
        pytest.param("a.csv", LATIN.encode("cp1252"), "Windows-1252", id="cp1252"),
        pytest.param("a.csv", CSV.encode("cp1250"), "cp1250", id="cp1250"),
        pytest.param("a.csv", CSV.encode("utf-8-sig"), "utf-8", id="mark-of-utf-8"),
        pytest.param("a.csv", CSV.encode("utf-8-sig"), "latin-1", id="mark-before-option"),
        pytest.param("a.csv", CSV.encode("utf-16"), "utf-8", id="mark-of-utf-16"),
        pytest.param("a.csv", b"\xfe\xff" + CSV.encode("utf-16-be"), "utf-8", id="mark-of-utf-16-be"),
        pytest.param("a.csv", CSV.encode("utf-16-le"), "utf-16-le", id="utf-16-without-mark"),
        pytest.param("a.csv.gz", gzip.compress(CSV.encode("utf-16")), "utf-8", id="utf-16-gz"),
        pytest.param("a.csv.zst", zstd(CSV.encode()), "utf-8", id="zst"),
        pytest.param("a.csv.zst", zstd(LATIN.encode("latin-1")), "latin-1", id="latin-1-zst"),
        pytest.param("a.jsonl", JSON.encode("utf-8-sig"), "utf-8", id="json-mark-of-utf-8"),
        pytest.param("a.jsonl", JSON.encode("utf-16"), "utf-8", id="json-utf-16"),
        pytest.param("a.jsonl.zst", zstd(JSON.encode("utf-8-sig")), "utf-8", id="json-zst"),
    ],
)
def test_encodings_and_codecs(name: str, data: bytes, encoding: str, engine: Any, lake: Lake) -> None:
    lake.table(NAMES, ("id",), splits=())
    lake.ingest(file(lake, name, data), engine=engine, options=ReadOptions(encoding=encoding))
    assert loaded(lake) in (["Málaga", "café"], ["café", "Łódź"])


@pytest.mark.parametrize(
    ("name", "data", "encoding", "says"),
    [
        pytest.param(
            "a.csv",
            LATIN.encode("latin-1"),
            "utf-8",
            "line 2 is not UTF-8; in latin-1 it reads '1,café'",
            id="latin-1",
        ),
        pytest.param("a.csv.gz", gzip.compress(LATIN.encode("latin-1")), "utf-8", "--encoding latin-1", id="gz"),
        pytest.param("a.csv", "id,näme\n".encode("latin-1"), "utf-8", "line 1 is not UTF-8", id="header"),
        pytest.param("a.csv", "id,name\n1,5 €\n".encode("cp1252"), "utf-8", "give --encoding cp1252", id="cp1252"),
        pytest.param(
            "a.jsonl", b'{"id": 1}\n{"id": 2, "name": "caf\xe9"}\n', "utf-8", "line 2 is not UTF-8", id="json"
        ),
        pytest.param("a.csv", b"id,name\n1,a\n2,\xff\n", "ascii", "it cannot be decoded: 'ascii' codec", id="ascii"),
        pytest.param("a.csv", CSV.encode(), "utf-16", "does not start with BOM", id="no-utf-16"),
        pytest.param("a.jsonl", JSON.encode(), "ascii", "it cannot be decoded: 'ascii' codec", id="json-ascii"),
        pytest.param("a.csv", CSV.encode("utf-16-le"), "utf-8", "give --encoding utf-16-le", id="nul"),
        pytest.param("a.csv", CSV.encode(), "klingon", "unknown --encoding 'klingon'", id="unknown"),
        pytest.param("a.csv", CSV.encode(), "hex", "unknown --encoding 'hex'", id="not-for-text"),
    ],
)
def test_text_that_cannot_be_decoded(name: str, data: bytes, encoding: str, says: str, lake: Lake) -> None:
    lake.table(NAMES, ("id",), splits=())
    with pytest.raises(InvalidInput) as raised:
        lake.ingest(file(lake, name, data), options=ReadOptions(encoding=encoding))
    assert says in str(raised.value)
    assert lake.open().count() == 0


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("id;name\n1;a,b\n2;c\n", id="semicolon"),
        pytest.param("id\tname\n1\ta\n2\tb\n", id="tab"),
        pytest.param('id|name\n1|a\n2|"b\n|c"\n', id="pipe"),
        pytest.param("id;name\n" + "".join(f"{i};x\n" for i in range(500)), id="more-than-the-sample"),
    ],
)
def test_delimiters_are_detected(text: str, engine: Any, lake: Lake) -> None:
    lake.table(NAMES, ("id",), splits=())
    notes: list[str] = []
    path = lake.text("a.csv", text)
    assert lake.ingest(path, engine=engine, on_note=notes.append).rows >= 2
    assert notes == [f"delimiter {text[2]!r} detected in {path}"]


@pytest.mark.parametrize(
    ("text", "options"),
    [
        pytest.param("id;name|x\n1;a|b\n", ReadOptions(), id="two-fit"),
        pytest.param("id;name\n1;a;b\n", ReadOptions(), id="other-widths"),
        pytest.param("id;name\n1;a\n", ReadOptions(delimiter=","), id="given"),
    ],
)
def test_a_delimiter_is_never_guessed(text: str, options: ReadOptions, lake: Lake) -> None:
    lake.table(NAMES, ("id",), splits=())
    with pytest.raises(InvalidInput, match="the table has no column"):
        lake.ingest(lake.text("a.csv", text), options=options)


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
def test_without_a_header_line_columns_are_the_tables(engine: Any, lake: Lake) -> None:
    lake.table(NAMES, ("id",), splits=())
    path = lake.text("a.csv", "1,a\n2,b\n")
    assert lake.ingest(path, engine=engine, options=ReadOptions(header=False)).rows == 2
    assert loaded(lake) == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "options", "says"),
    [
        pytest.param("1,a\n2,b\n", ReadOptions(), "is there a header line? If the first line is a row", id="row"),
        pytest.param("a,b\nc,d\n", ReadOptions(), "is there a header line?", id="no-known-name"),
        pytest.param("1,1,2\n", ReadOptions(), "is there a header line?", id="twice"),
        pytest.param("1\n", ReadOptions(header=False), "the first row has 1 value, and the table has 2", id="width"),
        pytest.param("ID,name\n", ReadOptions(), "it has 'id': names differ in case", id="case"),
    ],
)
def test_headers_that_do_not_fit(text: str, options: ReadOptions, says: str, lake: Lake) -> None:
    lake.table(NAMES, ("id",), splits=())
    with pytest.raises(InvalidInput) as raised:
        lake.ingest(lake.text("a.csv", text), options=options)
    assert says in str(raised.value)


def test_a_typo_in_a_header_is_no_question_for_the_header_line(lake: Lake) -> None:
    lake.table(NAMES, ("id",), splits=())
    with pytest.raises(InvalidInput) as raised:
        lake.ingest(lake.text("a.csv", "id,nane\n1,a\n"), format=Format.CSV)
    assert "header line" not in str(raised.value) and "did you mean 'name'" in str(raised.value)
