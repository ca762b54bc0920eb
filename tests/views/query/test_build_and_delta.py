"""Functions, lists, types and failures in views, and how much of a source a delta reads."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from deployer.errors import FunctionFailed, InvalidInput, NotFound
from deployer.functions import UDF, Columns, Failure, skip, udf
from deployer.views.query.build import build
from deployer.views.query.group_run import estimate, union_of
from deployer.views.query.model import FullRefreshNeeded, SourceSchema
from tests.views.query.lake import Kept, Lake

DOCS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("body", pa.string()), ("score", pa.float64())])
called: list[Any] = []


class Chunk(NamedTuple):
    text: str
    size: int


@udf
def chunks(body: str | None) -> list[Chunk]:
    called.append(body)
    return [Chunk(word, len(word)) for word in (body or "").split()]


@udf
def shout(text: str | None) -> str | None:
    called.append(text)
    return None if text is None else text.upper()


@udf(data_type="int64")
def sizes(text: pa.Array) -> pa.Array:
    return pc.utf8_length(text).cast(pa.int64())


@udf(data_type="float64")
def doubled(batch: pa.RecordBatch) -> pa.Array:
    return pc.multiply(batch.column("score"), 2.0)


@udf
def halves(text: str | None) -> Columns[Chunk]:
    return None if text is None else Chunk(text[: len(text) // 2], len(text))  # type: ignore[return-value] # a row without columns is null


@udf(on_error=skip())
def inverse(score: float) -> float:
    return 1 / score


@udf
def failing(score: float) -> float:
    raise ValueError("no")


FUNCTIONS: dict[str, UDF] = {each.name: each for each in (chunks, shout, sizes, doubled, halves, inverse, failing)}


def docs(*bodies: str | None) -> Lake:
    lake = Lake({"d.docs": SourceSchema("d.docs", DOCS, ("id",), unique=True)}, {"d.docs": {}})
    for number, body in enumerate(bodies):
        lake.insert("d.docs", {"id": number, "body": body, "score": float(number)})
    return lake


def rows_of(lake: Lake, query: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = Kept.built(lake.parse(query, FUNCTIONS), lake, FUNCTIONS).visible().to_pylist()
    return found


COMPUTED = {
    "of a value": ("SELECT shout(body) AS b FROM d.docs", [{"b": "A BB"}, {"b": None}, {"b": "C"}]),
    "of arrays": ("SELECT sizes(body) + 1 AS n FROM d.docs", [{"n": 5}, {"n": None}, {"n": 2}]),
    "of a batch": ("SELECT doubled(score) AS s FROM d.docs", [{"s": 0.0}, {"s": 2.0}, {"s": 4.0}]),
    "of an expression": ("SELECT shout(body || '!') AS b FROM d.docs WHERE id = 2", [{"b": "C!"}]),
    "of another function": ("SELECT sizes(shout(body)) AS n FROM d.docs WHERE sizes(body) > 1", [{"n": 4}]),
    "several columns": (
        "SELECT halves(body).text AS t, halves(body)['size'] AS n FROM d.docs WHERE body IS NOT NULL",
        [{"t": "A "[:1].lower() + " ", "n": 4}, {"t": "", "n": 1}],
    ),
    "chunks": (
        "SELECT id, c.text, c.size, c.place FROM d.docs "
        "CROSS JOIN UNNEST(chunks(body)) WITH ORDINALITY AS c(text, size, place)",
        [
            {"id": 0, "text": "a", "size": 1, "place": 1},
            {"id": 0, "text": "bb", "size": 2, "place": 2},
            {"id": 2, "text": "c", "size": 1, "place": 1},
        ],
    ),
    "functions and conditions of chunks": (
        "SELECT shout(c.text) AS t FROM d.docs CROSS JOIN UNNEST(chunks(body)) AS c WHERE c.size > 1 AND id < 2",
        [{"t": "BB"}],
    ),
    "aggregates of functions": (
        "SELECT sum(sizes(c.text)) AS n, count(*) AS words FROM d.docs CROSS JOIN UNNEST(chunks(body)) AS c",
        [{"n": 4, "words": 3}],
    ),
}


@pytest.mark.parametrize(("query", "expected"), COMPUTED.values(), ids=COMPUTED)
def test_functions_in_queries(query: str, expected: list[dict[str, Any]]) -> None:
    assert rows_of(docs("a bb", None, "c"), query) == expected


def test_a_function_is_called_once_for_each_row_that_the_conditions_leave() -> None:
    called.clear()
    rows_of(docs("a", "b", "c"), "SELECT shout(body) AS x, shout(body) || '!' AS y FROM d.docs WHERE id > 0")
    assert called == ["b", "c"]


def test_chunks_are_made_again_for_rows_that_changed_alone() -> None:
    query = (
        "SELECT id, c.text, c.place FROM d.docs CROSS JOIN UNNEST(chunks(body)) WITH ORDINALITY AS c(text, size, place)"
    )
    lake = docs("a b", "c", "d e f")
    kept = Kept.built(lake.parse(query, FUNCTIONS), lake, FUNCTIONS)
    later = lake.copy()
    later.rows["d.docs"][1] = {"id": 0, "body": "x", "score": 0.0}
    del later.rows["d.docs"][2]
    called.clear()
    kept.refresh(lake, later, FUNCTIONS)
    assert called == ["x"]
    assert sorted(row["text"] for row in kept.visible().to_pylist()) == ["d", "e", "f", "x"]


def test_rows_for_which_a_function_fails_are_reported_or_end_the_build() -> None:
    lake, heard = docs("a", "b"), list[tuple[str, int, str]]()

    def hear(name: str, batch: pa.RecordBatch, failures: Sequence[Failure]) -> None:
        heard.extend((name, batch.column("docs.id")[each.row].as_py(), each.error_type) for each in failures)

    view = lake.parse("SELECT id, inverse(score) AS i FROM d.docs", FUNCTIONS)
    [batch] = build(view, lake, FUNCTIONS, hear)
    assert batch.to_pylist() == [{"id": 0, "i": None}, {"id": 1, "i": 1.0}]
    assert heard == [("inverse", 0, "ZeroDivisionError")]
    with pytest.raises(FunctionFailed, match="no"):
        list(build(lake.parse("SELECT failing(score) AS f FROM d.docs", FUNCTIONS), lake, FUNCTIONS))


class Broken(Lake):
    def read(self, table: str, columns: Sequence[str], where: str) -> Iterator[pa.RecordBatch]:
        yield from super().read(table, columns, where)
        raise NotFound("the version was removed", where=table, remedy="refresh again")


@pytest.mark.parametrize("query", ["SELECT id FROM d.docs", "SELECT count(*) AS n FROM d.docs"])
def test_what_a_reader_raises_comes_through_as_it_is(query: str) -> None:
    lake = docs("a")
    with pytest.raises(NotFound, match="the version was removed; refresh again"):
        list(build(lake.parse(query), Broken(lake.schemas, lake.rows)))


def test_an_expression_that_fails_for_a_row_says_so() -> None:
    lake = docs("a")
    with pytest.raises(InvalidInput, match=r"the query fails for a row: .*[Dd]ivide by zero.*nullif"):
        list(build(lake.parse("SELECT 1 / id AS x FROM d.docs"), lake))


def test_a_sum_that_does_not_fit_is_an_error_and_not_another_number() -> None:
    lake = docs()
    lake.insert("d.docs", {"id": 2**62}, {"id": 2**62 + 1}, {"id": 5})
    query = "SELECT sum(id) AS s FROM d.docs"
    with pytest.raises(InvalidInput, match="the query fails for a row"):
        rows_of(lake, query)
    later = lake.copy()
    del later.rows["d.docs"][1]
    assert rows_of(later, query) == [{"s": 2**62 + 1 + 5}]


def test_nan_is_above_all_numbers() -> None:
    lake = docs()
    for number, score in enumerate((math.nan, 1.0, None)):
        lake.insert("d.docs", {"id": number, "score": score})
    assert [row["id"] for row in rows_of(lake, "SELECT id FROM d.docs WHERE score > 5")] == [0]
    extremes = "SELECT min(score) AS least, max(score) AS most FROM d.docs"
    [found] = rows_of(lake, extremes)
    assert (found["least"], str(found["most"])) == (1.0, "nan")
    later = lake.copy()
    del later.rows["d.docs"][1]
    kept = Kept.built(lake.parse(extremes), lake)
    kept.refresh(lake, later)
    assert kept.visible().to_pylist() == [{"least": 1.0, "most": 1.0}]


def test_a_query_without_group_by_has_one_row_of_no_rows() -> None:
    lake = docs()
    later = lake.copy()
    later.insert("d.docs", {"id": 1, "score": 2.0})
    kept = Kept.built(lake.parse("SELECT count(*) AS n, sum(id) AS s, max(score) AS m FROM d.docs"), lake)
    assert kept.visible().to_pylist() == [{"n": 0, "s": None, "m": None}]
    kept.refresh(lake, later)
    assert kept.visible().to_pylist() == [{"n": 1, "s": 1, "m": 2.0}]
    kept.refresh(later, lake)
    assert kept.visible().to_pylist() == [{"n": 0, "s": None, "m": None}]


def test_deletes_read_the_source_only_for_groups_whose_extreme_went() -> None:
    lake = docs(*("ab" * 50))
    later = lake.copy()
    kept = Kept.built(lake.parse("SELECT body, count(*) AS n, max(score) AS m FROM d.docs GROUP BY body"), lake)
    del later.rows["d.docs"][1]
    later.read_rows = 0
    kept.refresh(lake, later)
    assert later.read_rows == 0
    latest = later.copy()
    del latest.rows["d.docs"][100]  # the last "b"
    kept.refresh(later, latest)
    assert latest.read_rows == 49
    assert kept.visible().sort_by("body").to_pylist() == [
        {"body": "a", "n": 49, "m": 98.0},
        {"body": "b", "n": 49, "m": 97.0},
    ]


def test_a_view_that_has_not_what_went_is_refreshed_in_full() -> None:
    lake = docs("a", "a")
    kept = Kept.built(lake.parse("SELECT body, count(*) AS n FROM d.docs GROUP BY body"), docs("a"))
    with pytest.raises(FullRefreshNeeded, match="the view has fewer rows of some groups than were removed"):
        kept.refresh(lake, docs())


def test_a_change_of_a_small_table_reads_the_rows_that_are_joined_with_it() -> None:
    codes = pa.schema([pa.field("code", pa.string(), nullable=False), ("name", pa.string())])
    lake = docs(*("abc" * 20))
    lake.schemas = {**lake.schemas, "d.codes": SourceSchema("d.codes", codes, ("code",), unique=True)}
    lake.insert("d.codes", {"code": "a", "name": "one"}, {"code": "b", "name": "two"})
    later = lake.copy()
    later.rows["d.codes"][lake.given] = {"code": "b", "name": "three"}
    for query in (
        "SELECT id, name FROM d.docs LEFT JOIN d.codes ON code = body",
        "SELECT name, count(*) AS n FROM d.docs JOIN d.codes ON code = body GROUP BY name",
    ):
        view = lake.parse(query)
        kept = Kept.built(view, lake)
        later.read_rows = 0
        kept.refresh(lake, later)
        assert later.read_rows <= 2 * 20 + 2 * 2
        assert sorted(map(str, kept.visible().to_pylist())) == sorted(
            map(str, Kept.built(view, later).visible().to_pylist())
        )


TYPES = {
    "timestamps": (pa.timestamp("ns", "Europe/Paris"), [1, 2, 1]),
    "times": (pa.time64("us"), [datetime.time(1), datetime.time(2), datetime.time(1)]),
    "bytes": (pa.binary(), [b"a", b"\xff", b"a"]),
    "large texts": (pa.large_string(), ["a", "b", "a"]),
    "dictionaries": (pa.dictionary(pa.int8(), pa.string()), ["a", "b", "a"]),
    "truth": (pa.bool_(), [True, False, True]),
    "decimals": (pa.decimal128(20, 4), [Decimal("1.5"), Decimal(2), Decimal("1.5")]),
    "unsigned": (pa.uint64(), [1, 2**64 - 1, 1]),
}


@pytest.mark.parametrize(("kind", "values"), TYPES.values(), ids=TYPES)
def test_types_of_columns(kind: pa.DataType, values: list[Any]) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", kind)])
    lake = Lake({"d.t": SourceSchema("d.t", schema, ("id",), unique=True)}, {"d.t": {}})
    later = lake.copy()
    later.insert("d.t", *({"id": number, "v": value} for number, value in enumerate([*values, None])))
    rows = "SELECT id, v FROM d.t"
    groups = "SELECT v, count(*) AS n, min(v) AS least, approx_distinct(v) AS d, count(v) AS given FROM d.t GROUP BY v"
    for query in (rows, groups):
        view = lake.parse(query)
        kept, built = Kept.built(view, lake), Kept.built(view, later)
        kept.refresh(lake, later)
        assert kept.table.schema == view.stored_schema
        assert sorted(map(str, kept.visible().to_pylist())) == sorted(map(str, built.visible().to_pylist()))
    assert sorted((row["n"], row["d"], row["given"]) for row in rows_of(later, groups)) == [
        (1, 0, 0),
        (1, 1, 1),
        (2, 1, 2),
    ]
    assert [row["v"] for row in rows_of(later, rows)] == later.table("d.t").column("v").to_pylist()


def test_estimates_of_distinct_values_do_not_depend_on_the_order_of_loads() -> None:
    lake = docs(*map(str, range(3000)))
    view = lake.parse("SELECT approx_distinct(body) AS n FROM d.docs")
    [whole] = Kept.built(view, lake).visible().column("n").to_pylist()
    assert whole == pytest.approx(3000, rel=0.05)
    empty = replace(lake.copy(), rows={"d.docs": {}})
    half = replace(lake.copy(), rows={"d.docs": dict(list(lake.rows["d.docs"].items())[::2])})
    kept = Kept.built(view, empty)
    kept.refresh(empty, half)
    kept.refresh(half, lake)
    assert kept.visible().column("n").to_pylist() == [whole]
    assert (union_of(None), estimate(None)) == (None, 0)
