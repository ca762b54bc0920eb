"""What backfills compute, by SQL and by functions of every form, beside plain pandas."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from deployer.functions import udf
from deployer.specs.types.arrow import arrow_field
from deployer.specs.types.types import Blob, Column
from deployer.table import Table, connect
from deployer.tables.maintenance.verify.verify import verify
from tests.columns.backfill.conftest import with_computed
from tests.columns.backfill.functions import FORMS
from tests.columns.rows import SCHEMA, rows, values
from tests.tables.lakes import Lake

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
    from deployer.specs.model import Storage

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
