"""What backfills compute, by SQL and by functions of every form, beside plain pandas."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import lance
import lancedb
import pyarrow as pa
import pytest
from pydantic import BaseModel

from deployer.functions import Columns, UnpackedUDF, udf
from deployer.functions.model import UDF
from deployer.specs.model import Storage
from deployer.specs.types.arrow import arrow_field, arrow_type
from deployer.specs.types.parser import parse_type
from deployer.specs.types.table import TYPE_ROWS
from deployer.specs.types.types import Blob, Column, holds_blob
from deployer.table import Table, connect
from deployer.tables.maintenance.verify.verify import verify
from tests.columns.backfill.conftest import with_computed
from tests.columns.backfill.functions import FORMS
from tests.columns.rows import SCHEMA, rows, values
from tests.tables.lakes import Lake
from tests.values import array, nullable

EXPECTED = {i: i * 2 + 1.0 for i in range(30)}


@pytest.mark.parametrize("form", FORMS)
def test_functions_of_each_form(form: str, table: Table) -> None:
    done = table.backfill("score", udf=FORMS[form])
    frame = table.to_pandas(["id", "rating", "score"])
    assert (frame.score == frame.rating * 2 + 1).all() and len(frame) == 30
    assert (done.rows, done.errors, done.stats.fragments, done.status) == (30, 0, 3, "SUCCEEDED")


def test_a_declared_function_and_sql(table: Table, lake: Lake) -> None:
    table.backfill("score")
    table.backfill(["km"])
    frame = table.to_pandas(["id", "rating", "score", "km"])
    assert (frame.score == frame.rating * 2 + 1).all() and (frame.km == frame.rating * 1.609344).all()
    assert [str(one) for each in verify(lake.store, lake.root, full=True) for one in each.differences] == []
    plain = lance.dataset(lake.open().opened.location).to_table(columns=["id", "score"]).to_pydict()
    assert dict(zip(plain["id"], plain["score"], strict=True)) == EXPECTED


@pytest.mark.parametrize("where", [None, "id >= 5"], ids=["all rows", "some rows"])
def test_a_fragment_gets_one_more_file_and_its_other_files_stay(where: str | None, table: Table, lake: Lake) -> None:
    """By a replacement of data, which Lance applies beside appends; neither by a merge nor by an overlay."""
    opened = lake.open().opened
    before = lance.dataset(opened.location)
    table.backfill("score", where=where)
    after = lance.dataset(opened.location)
    [field] = [each.id() for each in after.lance_schema.fields() if each.name() == "score"]
    for old, new in zip(before.get_fragments(), after.get_fragments(), strict=True):
        files = {each.path: list(each.fields) for each in old.metadata.files}
        added = {each.path: list(each.fields) for each in new.metadata.files if each.path not in files}
        assert files.keys() < {each.path for each in new.metadata.files}
        assert list(added.values()) == [[field]]
    for version in range(before.version + 1, after.version + 1):
        assert isinstance(after.read_transaction(version).operation, lance.LanceOperation.DataReplacement)


def test_deleted_rows_and_rows_without_values(table: Table) -> None:
    table.delete("id in (3, 4, 15)")
    table.update(where="id = 20", values={"rating": None})
    table.backfill("score", udf=_none_is_zero)
    assert values(table, "score") == {i: 0.0 if i == 20 else i * 2 + 1.0 for i in range(30) if i not in (3, 4, 15)}


@udf(data_type=pa.float64())
def _none_is_zero(rating: float | None) -> float:
    return 0.0 if rating is None else rating * 2 + 1


KINDS: list[tuple[str, pa.DataType, Any]] = [
    ("vector", pa.list_(pa.float32(), 3), lambda id: [id, id + 0.5, -id]),
    ("list", pa.list_(pa.string()), lambda id: [f"t{id}"] * (id % 3)),
    ("struct", pa.struct([("x", pa.int32()), ("label", pa.string())]), lambda id: {"x": id, "label": f"l{id}"}),
    ("text", pa.string(), lambda id: None if id % 4 == 1 else f"text {id}"),
    ("date", pa.date32(), lambda id: dt.date(2020, 1, 1) + dt.timedelta(id)),
    ("bool", pa.bool_(), lambda id: id % 2 == 0),
    ("binary", pa.binary(), lambda id: bytes([id])),
]


@pytest.mark.parametrize(("kind", "make"), [case[1:] for case in KINDS], ids=[case[0] for case in KINDS])
def test_values_of_each_type(kind: pa.DataType, make: Any, tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.table(pa.schema([*SCHEMA, pa.field("made", kind)]), row_keys=("id",), splits=())
    with connect(lake.root) as connection:
        table = connection.open_table("flights")
        for start in (0, 10):
            table.add(rows(start, start + 10).append_column("made", pa.nulls(10, kind)))
        function = udf(data_type=kind)(lambda id: make(id))
        with pytest.warns(UserWarning, match="no types of id are annotated"):
            table.backfill("made", udf=function)
        assert values(table, "made") == {i: make(i) for i in range(20)}
        table.delete("id = 5")
        with pytest.warns(UserWarning, match="no types of id are annotated"):
            table.backfill("made", udf=udf(data_type=kind)(lambda id: make(id + 1)), where="id < 12")
        assert values(table, "made") == {i: make(i + (i < 12)) for i in range(20) if i != 5}


#: Blobs are not computed, and no column has the type null.
TEXTS = [row.text for row in TYPE_ROWS if row.text != "null" and not holds_blob(parse_type(row.text))]
TYPES = {f"t{place}": Column(f"t{place}", parse_type(text)) for place, text in enumerate(TEXTS)}


@pytest.mark.full
def test_values_of_every_type_of_specs(tmp_path: Path) -> None:
    """Each goes into a function and comes back, for all rows, and for some beside others that keep theirs."""
    lake = Lake(tmp_path)
    kinds = {name: arrow_type(column.type) for name, column in TYPES.items()}
    made = [pa.field(f"made_{name}", kind) for name, kind in kinds.items()]
    schema = pa.schema([*SCHEMA, *(arrow_field(column) for column in TYPES.values()), *made])
    lake.table(schema, row_keys=("id",), splits=(), storage=Storage(data_storage_version="2.2"))
    given = rows(0, 12)
    for name, column in TYPES.items():
        given = given.append_column(name, array(kinds[name], [nullable(column, i) for i in range(12)]))
    for each in made:
        given = given.append_column(each.name, pa.nulls(12, each.type))
    with connect(lake.root) as connection:
        table = connection.open_table("flights")
        table.add(given)
        table.delete("id = 7")
        for name, text in zip(TYPES, TEXTS, strict=True):
            same = udf(data_type=text, input_columns=[name])(given_back)
            table.backfill(f"made_{name}", udf=same, where="id < 5")
            assert values(table, f"made_{name}") == {
                i: each if i < 5 else None for i, each in values(table, name).items()
            }, text
            table.backfill(f"made_{name}", udf=same)
            assert values(table, f"made_{name}") == values(table, name), text
    opened = lake.open().opened
    plain = lance.dataset(opened.location).to_table()
    assert plain.num_rows == 11
    for name, text in zip(TYPES, TEXTS, strict=True):
        assert plain[f"made_{name}"].to_pylist() == plain[name].to_pylist(), text


def given_back(a):  # type: ignore[no-untyped-def]
    """Returns what it gets; without an annotation it takes any type."""
    return a


class Moment(NamedTuple):
    year: int
    label: str


@dataclass
class Measure:
    half: float
    tags: list[str]


class Item(BaseModel):
    price: float
    name: str | None = None


@udf
def moments(day: dt.date) -> Columns[Moment]:
    return Moment(day.year, f"{day:%b}")


@udf
def measures(rating: float) -> Columns[Measure]:
    return Measure(rating / 2, [f"r{rating:g}"])


@udf
async def items(id: int, name: str) -> Columns[Item]:
    await asyncio.sleep(0)
    return Item(price=id * 1.5, name=name if id % 2 else None)


SEVERAL: dict[str, tuple[UDF, Callable[[Any], dict[str, Any]]]] = {
    "NamedTuple": (moments, lambda row: {"year": row.day.year, "label": f"{row.day:%b}"}),
    "dataclass": (measures, lambda row: {"half": row.rating / 2, "tags": [f"r{row.rating:g}"]}),
    "model of pydantic": (items, lambda row: {"price": row.id * 1.5, "name": row["name"] if row.id % 2 else None}),
}


@pytest.mark.parametrize("kind", SEVERAL)
def test_functions_of_several_columns(kind: str, table: Table) -> None:
    function, expected = SEVERAL[kind]
    table.add_columns(UnpackedUDF(function, prefix="x_"))
    names = [f"x_{name}" for name in expected(table.to_pandas().iloc[0])]
    assert {names[0], *table.backfill(names[0]).siblings} == {*names}
    frame = table.to_pandas()
    wanted = [{f"x_{name}": value for name, value in expected(row).items()} for _, row in frame.iterrows()]
    assert table.to_arrow(names).to_pylist() == wanted and len(frame) == 30


def test_a_column_for_two_parameters(table: Table) -> None:
    @udf(version="1")
    def product(a: float, b: float, c: int) -> float:
        return a * b + c

    table.add_columns({"square": (product, ["rating", "rating", "id"])}, on_load=True)
    table.backfill("square")
    table.add(with_computed(rows(30, 40)))
    assert values(table, "square") == {i: float(i * i + i) for i in range(40)}


def test_lancedb_and_plain_lance_read_them(table: Table, lake: Lake) -> None:
    table.backfill("score")
    location = Path(lake.open().opened.location)
    peer = lancedb.connect(str(location.parent)).open_table(location.stem)
    found = peer.search().where("id >= 10").select(["id", "score"]).to_arrow()
    assert dict(zip(found["id"].to_pylist(), found["score"].to_pylist(), strict=True)) == {
        i: EXPECTED[i] for i in range(10, 30)
    }
    assert lance.dataset(str(location)).scanner(columns=["score"], filter="score = 21").to_table().num_rows == 1


def test_a_class_is_set_up_once_for_each_worker(table: Table) -> None:
    made = []

    class Counting:
        def __init__(self) -> None:
            made.append(self)

        def __call__(self, rating: float) -> float:
            return rating * 2 + 1

    table.backfill("score", udf=udf(data_type=pa.float64())(Counting), concurrency=1)
    assert len(made) == 1 and values(table, "score") == EXPECTED


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("strategy", ["auto", "legacy", "range"])
def test_blobs_are_read_within_the_buffer(strategy: str, version: str, tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    columns = [*SCHEMA, arrow_field(Column("image", Blob())), pa.field("size", pa.int64())]
    lake.table(pa.schema(columns), row_keys=("id",), splits=(), storage=Storage(data_storage_version=version))
    largest = []

    @udf(data_type=pa.int64())
    def size_of(image: pa.Array) -> pa.Array:
        largest.append(image.nbytes)
        return pa.array([None if each is None else len(each) for each in image.to_pylist()], pa.int64())

    with connect(lake.root) as connection:
        table = connection.open_table("flights")
        images = [None if i == 4 else bytes(1000 * i) for i in range(10)]
        table.add(
            rows(0, 10)
            .append_column("image", pa.array(images, pa.large_binary()))
            .append_column("size", pa.nulls(10, pa.int64()))
        )
        table.backfill(
            "size", udf=size_of, blob_read_strategy=strategy, blob_read_buffer_size=12_000, concurrency=1,
            _admission_check=False,
        )  # fmt: skip
        assert values(table, "size") == {i: None if i == 4 else 1000 * i for i in range(10)}
    assert max(largest) < 14_000 and len(largest) >= 4


def test_rows_that_are_added_later_are_computed_by_the_next_backfill(table: Table) -> None:
    table.backfill("score")
    table.add(with_computed(rows(30, 35)))
    assert values(table, "score") == EXPECTED | dict.fromkeys(range(30, 35))
    done = table.backfill("score")
    assert (done.rows, done.stats.fragments) == (5, 1)
    assert values(table, "score") == {i: i * 2 + 1.0 for i in range(35)}
