"""JSON as programs write it: documents, maps, arrays of rows, and fields that are ignored."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deployer.errors import InvalidInput, Refused
from deployer.specs.model import Storage
from deployer.specs.types.types import format_type
from deployer.tables.importing.infer import infer
from deployer.tables.ingest.files import json_rows
from deployer.tables.ingest.files.model import ReadOptions
from deployer.tables.read.export import write_json_lines
from tests.tables.ingest.test_ingest import ENGINES, engine
from tests.tables.lakes import Lake

__all__ = ["engine"]

MAPS = Storage(data_storage_version="2.2")


def table(lake: Lake, **columns: pa.DataType) -> None:
    lake.table(pa.schema([pa.field(name, kind) for name, kind in columns.items()]), (), name="t", storage=MAPS)


def load(lake: Lake, *rows: str, **request: Any) -> list[Any]:
    """What column `v` of the table has after lines `{"v": …}` were loaded."""
    lines = (f'{{"v": {row}}}' for row in rows)
    lake.ingest(lake.text("in.jsonl", "\n".join(lines)), table="t", **request)
    return list(lake.open("t").scan(columns=["v"]).to_table()["v"].to_pylist())


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
def test_any_value_is_a_document(engine: Any, lake: Lake) -> None:
    table(lake, v=pa.json_())
    values = ['{"n":1.5,"x":true}', '[1,"ü"]', "5", "18446744073709551615", "true", '"text"', '"12"']
    in_text = [json.dumps('{"x": 1}'), json.dumps("[oops")]
    assert load(lake, *values, *in_text, "null", engine=engine) == [*values, '{"x":1}', '"[oops"', None]


@pytest.mark.parametrize("value", ["1e400", "18446744073709551616", '{"a": [1e400]}', "NaN", r'"{\"a\": 1, \"a\": 2}"'])
def test_documents_that_lance_would_change_are_refused(value: str, lake: Lake) -> None:
    table(lake, v=pa.json_())
    with pytest.raises(Refused, match=r"row 1: column 'v' .* does not fit json"):
        load(lake, value)


def test_documents_lie_inside_of_other_values(lake: Lake) -> None:
    table(lake, v=pa.struct([("a", pa.list_(pa.json_())), ("b", pa.int64())]))
    assert load(lake, '{"a": [{"x": 1}, 2, null], "b": 6.0}') == [{"a": ['{"x":1}', "2", None], "b": 6}]


def test_documents_come_back_as_they_were_exported(lake: Lake) -> None:
    table(lake, v=pa.json_())
    values = load(lake, '{"x": 1.10}', '"12"', "5", "null")
    with (lake.folder / "out.jsonl").open("w", encoding="utf-8") as sink:
        write_json_lines(lake.open("t").scan().to_table().to_batches(), sink)
    lake.ingest(lake.folder / "out.jsonl", table="t")
    assert lake.open("t").scan().to_table()["v"].to_pylist() == values * 2


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
def test_objects_and_pairs_are_maps(engine: Any, lake: Lake) -> None:
    table(lake, v=pa.map_(pa.string(), pa.int64()))
    forms = ['{"a": 1, "b": null}', '[["a", 1], ["b", null]]', '[{"key": "a", "value": 1.0}, {"key": "b"}]']
    assert load(lake, *forms, "{}", "[]", "null", engine=engine) == [[("a", 1), ("b", None)]] * 3 + [[], [], None]


def test_maps_have_keys_and_values_of_any_type(lake: Lake) -> None:
    inner = pa.map_(pa.int32(), pa.list_(pa.map_(pa.date32(), pa.decimal128(8, 2))))
    table(lake, v=pa.struct([("m", inner)]))
    found = load(lake, '{"m": {"7": [{"2024-01-01": 10.95}]}}')
    (key, (((day, value),),)) = found[0]["m"][0]
    assert (key, str(day), value) == (7, "2024-01-01", Decimal("10.95"))


@pytest.mark.parametrize("value", ['[["a"]]', '[{"key": "a", "other": 1}]', "5", "[[null, 1]]", '{"a": "x"}', "[null]"])
def test_what_is_not_a_map_is_refused(value: str, lake: Lake) -> None:
    table(lake, v=pa.map_(pa.string(), pa.int64()))
    with pytest.raises(Refused, match=r"row 2: column 'v' .* does not fit map<string, int64>"):
        load(lake, '{"a": 1}', value)


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (pa.int32(), {"6.0": 6, "1e3": 1000, "-0.0": 0}, ["6.5", "2147483648.0", "1e-1", "NaN", "9" * 200]),
        (
            pa.decimal128(10, 2),
            {"10.95": Decimal("10.95"), "1e3": Decimal(1000)},
            ["10.955", "1" + "0" * 128, "1e40", f'"{"9" * 200}"'],
        ),
        (pa.decimal128(38, 30), {"1": Decimal(1)}, ["1234567890123456789", "1e9"]),
        (pa.float64(), {"1e308": 1e308, "6": 6.0}, ["1e400", "9" * 400]),
        (pa.float32(), {"1.5": 1.5}, ["1e39"]),
        (pa.list_(pa.int64()), {"[6.0]": [6]}, ["[6.5]"]),
        (pa.struct([("x", pa.float32())]), {'{"x": 1.5}': {"x": 1.5}}, ['{"x": 1e39}']),
    ],
    ids=str,
)
def test_numbers_keep_their_value_or_are_refused(
    kind: pa.DataType, good: dict[str, Any], bad: list[str], lake: Lake
) -> None:
    table(lake, v=kind)
    assert load(lake, *good) == [*good.values()]
    for value in bad:
        with pytest.raises(Refused, match=r"row 2: column 'v' .* does not fit"):
            load(lake, next(iter(good)), value)


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
def test_ignored_fields_may_have_any_type_in_each_row(engine: Any, lake: Lake) -> None:
    table(lake, v=pa.int64())
    rows = ["1", '2, "extra": 7', '3, "extra": [1, 2, {"k": 1}]', '4, "extra": {"k": []}', '5, "extra": 1e400']
    with pytest.raises(InvalidInput, match="the table has no column 'extra'"):
        load(lake, *rows, engine=engine)
    assert sorted(load(lake, *rows, ignore_extra=True, engine=engine)) == [1, 2, 3, 4, 5]


def test_half_a_character_is_refused(lake: Lake) -> None:
    table(lake, v=pa.json_())
    with pytest.raises(Refused, match=r"row 2: the row .* has an unpaired surrogate"):
        load(lake, "1", r'"\ud800"')


ROWS = [{"v": i, "s": f'ü [{{]}},\\" {i}'} for i in range(500)]
ARRAYS = {
    "compact": json.dumps(ROWS, separators=(",", ":")),
    "pretty": json.dumps(ROWS, indent=2, ensure_ascii=False).replace("\n", "\r\n"),
    "spaces": f"\ufeff \n\t{json.dumps(ROWS)}\n \n",
}


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
@pytest.mark.parametrize("form", ARRAYS)
@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "gz"])
def test_a_file_may_be_one_array(
    form: str, compressed: bool, engine: Any, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_rows, "BLOCK_BYTES", 999)
    table(lake, v=pa.int64(), s=pa.string())
    data = ARRAYS[form].encode()
    path = lake.folder / ("a.json.gz" if compressed else "a.json")
    path.write_bytes(gzip.compress(data) if compressed else data)
    assert lake.ingest(path, table="t", engine=engine).rows == 500
    assert lake.open("t").scan().to_table().to_pylist() == ROWS


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", ""),
        ('[{"v": 1}, 2]', "row 2: the row '2' is not a JSON object"),
        ('[{"v": 1}, {"v": "x"}]', "row 2: column 'v' 'x' does not fit int64"),
        ('[{"v": 1}, {"v": 2}', "after row 2 of the array, the file ends"),
        ('[{"v": 1}, {"v": ', "after row 1 of the array, Expecting value"),
        ('[{"v": 1} {"v": 2}]', "after row 1 of the array, there is '{' instead of ','"),
        ('[{"v": 1}]\n{"v": 2}', "there is more after the array"),
        ("[" * 100_000, "before the first row of the array, values are nested too deep"),
    ],
)
def test_arrays_that_are_not_rows(text: str, said: str, lake: Lake) -> None:
    table(lake, v=pa.int64())
    path = lake.text("a.json", text)
    if not said:
        assert lake.ingest(path, table="t").rows == 0
        return
    with pytest.raises((InvalidInput, Refused)) as raised:
        lake.ingest(path, table="t")
    assert said in str(raised.value)


def test_columns_of_arrays_are_inferred(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(ARRAYS["pretty"], encoding="utf-8")
    found = infer([str(tmp_path / "a.json")], None, ReadOptions(), 100)
    assert [(each.name, format_type(each.type)) for each in found.columns] == [("v", "int64"), ("s", "string")]
    assert (found.rows, found.complete) == (100, False)
