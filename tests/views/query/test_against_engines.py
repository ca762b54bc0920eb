"""Random sources, queries and changes: views against DataFusion, and DuckDB where it is installed."""

from __future__ import annotations

import datetime
import math
from collections import Counter
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from datafusion import SessionConfig, SessionContext
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from deployer.views.query.model import FullRefreshNeeded, SourceSchema
from tests.views.query.lake import Kept, Lake, Row

try:
    import duckdb
except ImportError:
    duckdb = None

FACTS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("shop", pa.string()),
        ("grade", pa.int32()),
        ("amount", pa.int64()),
        ("weight", pa.float64()),
        ("price", pa.decimal128(9, 2)),
        ("day", pa.date32()),
        ("tags", pa.list_(pa.string())),
    ]
)
SHOPS = pa.schema([pa.field("code", pa.string(), nullable=False), ("city", pa.string()), ("size", pa.int64())])
CITIES = pa.schema([pa.field("city", pa.string(), nullable=False), ("country", pa.string())])

#: How rows of the first table are known.
KNOWN_BY = {
    "unique keys": SourceSchema("db.facts", FACTS, ("id",), unique=True),
    "keys that repeat": SourceSchema("db.facts", FACTS, ("id",)),
    "row ids": SourceSchema("db.facts", FACTS, stable_row_ids=True),
}
SMALL = {
    "db.shops": SourceSchema("db.shops", SHOPS, ("code",), unique=True),
    "db.cities": SourceSchema("db.cities", CITIES, ("city",), unique=True),
}

CODES = st.sampled_from(["a", "b", "c", "d"])
NAMES = st.sampled_from(["x", "y", "z", ""])


def facts(numbers: st.SearchStrategy[int]) -> st.SearchStrategy[Row]:
    return st.fixed_dictionaries(
        {
            "id": numbers,
            "shop": st.none() | CODES,
            "grade": st.none() | st.integers(0, 3),
            "amount": st.none() | st.integers(-5, 5) | st.just(2**62),
            "weight": st.none() | st.integers(-8, 8).map(lambda each: each / 4) | st.just(math.nan),
            "price": st.none() | st.integers(-300, 300).map(lambda each: Decimal(each) / 100),
            "day": st.none()
            | st.integers(0, 70).map(lambda each: datetime.date(2024, 1, 1) + datetime.timedelta(each)),
            "tags": st.none() | st.lists(NAMES, max_size=3),
        }
    )


SHOP = st.fixed_dictionaries({"code": CODES, "city": st.none() | NAMES, "size": st.none() | st.integers(0, 3)})
CITY = st.fixed_dictionaries({"city": NAMES, "country": st.none() | st.sampled_from(["fr", "de"])})

VALUES = [
    "f.id",
    "f.shop",
    "f.amount % 3 AS rest",
    "upper(f.shop) || '!' AS loud",
    "CASE WHEN f.grade BETWEEN 1 AND 2 AND f.amount > 0 THEN 'mid' ELSE 'other' END AS class",
    "coalesce(f.weight, 0.5) + 1 AS heavier",
    "date_trunc('month', f.day) AS month",
    "CAST(f.price AS DOUBLE) * 2 AS twice",
]
KEYS = ["f.shop", "f.grade", "date_trunc('month', f.day) AS month", "f.amount > 0 AS positive"]
JOINED_KEYS = [*KEYS, "s.city", "s.size AS size"]
AGGREGATES = [
    "count(*) AS n",
    "count(f.amount) AS amounts",
    "sum(f.grade) AS grades",
    "sum(f.amount % 5) AS rests",
    "sum(f.price) AS prices",
    "sum(nullif(f.weight, 'NaN')) AS weights",
    "avg(f.grade) AS mean",
    "avg(f.amount) AS amount",
    "min(f.amount) AS least",
    "max(f.day) AS last",
    "min(f.weight) AS lightest",
    "max(f.weight) AS heaviest",
    "min(f.shop) AS first",
    "approx_distinct(f.shop) AS shops",
    "sum(f.grade) FILTER (WHERE f.amount > 0) AS some",
    "max(f.amount) - min(f.grade) AS spread",
]
CONDITIONS = [
    "",
    "f.amount > 0",
    "f.shop IN ('a', 'b') AND f.grade IS NOT NULL",
    "f.weight > 0.5 OR f.day < DATE '2024-01-20'",
    "f.grade IS NOT DISTINCT FROM 2 AND NOT f.amount = 1",
]
JOINS = [
    ("", False),
    ("JOIN db.shops AS s ON f.shop = s.code", True),
    ("LEFT JOIN db.shops AS s ON s.code = f.shop", True),
    ("LEFT JOIN db.shops AS s ON f.shop = s.code AND s.size > 1", True),
    ("LEFT JOIN db.shops AS s ON f.shop = s.code LEFT JOIN db.cities AS c ON c.city = s.city", True),
]


@st.composite
def queries(draw: st.DrawFn) -> str:
    join, joined = draw(st.sampled_from(JOINS))
    condition = draw(
        st.sampled_from([*CONDITIONS, *(["s.size > 0", "f.grade > 0 AND s.city = 'x'"] if joined else [])])
    )
    where = f" WHERE {condition}" if condition else ""
    source = f"FROM db.facts AS f {join}"
    shape = draw(st.sampled_from(["rows", "groups", "groups", "whole", "lists", "union"]))
    if shape in ("groups", "whole"):
        few = 0 if shape == "whole" else 1
        keys = draw(
            st.lists(st.sampled_from(JOINED_KEYS if joined else KEYS), min_size=few, max_size=2 * few, unique=True)
        )
        chosen = draw(st.lists(st.sampled_from(AGGREGATES), min_size=1, max_size=4, unique=True))
        groups = ", ".join(each.split(" AS ")[0] for each in keys)
        return f"SELECT {', '.join(keys + chosen)} {source}{where}" + (f" GROUP BY {groups}" if keys else "")
    values = draw(st.lists(st.sampled_from(VALUES), min_size=1, max_size=4, unique=True))
    values += ["s.size", "s.city"] if joined else []
    values += ["c.country"] if "AS c " in join else []
    if shape == "lists":
        numbered = draw(st.booleans())
        values += ["u.tag", "u.place"] if numbered else ["u.tag"]
        shown = "WITH ORDINALITY AS u(tag, place)" if numbered else "AS u(tag)"
        return f"SELECT {', '.join(values)} {source} CROSS JOIN UNNEST(f.tags) {shown}{where}"
    first = f"SELECT {', '.join(values)} {source}{where}"
    if shape == "union":
        return f"{first} UNION ALL SELECT {', '.join(values)} {source} WHERE f.grade = 1"
    return first


@st.composite
def lakes(draw: st.DrawFn, known_by: str) -> list[Lake]:
    """Draws states of a lake, each with changes of the one before."""
    unique = known_by == "unique keys"
    lake = Lake({"db.facts": KNOWN_BY[known_by], **SMALL}, {name: {} for name in ("db.facts", *SMALL)})
    found = list[Lake]()
    for _ in range(draw(st.integers(2, 4))):
        lake = lake.copy()
        for table, row, key in (("db.shops", SHOP, "code"), ("db.cities", CITY, "city")):
            if not found or draw(st.booleans()):
                change(draw, lake, table, row, key, 3)
        if not found or draw(st.integers(0, 3)):
            numbers = st.integers(0, 30) if unique else st.integers(0, 6)
            change(draw, lake, "db.facts", facts(numbers), "id" if unique else "", 8)
        found.append(lake)
    return found


def change(draw: st.DrawFn, lake: Lake, table: str, rows: st.SearchStrategy[Row], key: str, most: int) -> None:
    held = lake.rows[table]
    for number in list(held):
        match draw(st.integers(0, 5)):
            case 0:
                del held[number]
            case 1:
                held[number] = {**draw(rows), **({key: held[number][key]} if key else {"id": held[number]["id"]})}
    for row in draw(st.lists(rows, max_size=most)):
        if not key or all(row[key] != other[key] for other in held.values()):
            lake.insert(table, row)


def datafusion_rows(lake: Lake, query: str) -> pa.Table:
    from datafusion.catalog import Schema

    context = SessionContext(SessionConfig().with_target_partitions(1))
    context.catalog().register_schema("db", Schema.memory_schema())
    for name in lake.schemas:
        table = lake.table(name).drop_columns(["_rowid"])
        batches = table.to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]
        context.register_record_batches("t", [batches])
        context.catalog().schema("db").register_table(name.removeprefix("db."), context.table("t"))
        context.deregister_table("t")
    return context.sql(query).to_arrow_table()


def duckdb_rows(lake: Lake, query: str) -> pa.Table:
    with duckdb.connect() as connection:
        connection.execute("CREATE SCHEMA db")
        for name in lake.schemas:
            held = lake.table(name).drop_columns(["_rowid"])
            connection.register("held", held)
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM held")  # noqa: S608
            connection.unregister("held")
        query = query.replace("approx_distinct(f.shop)", "count(DISTINCT f.shop)")
        return connection.sql(query).to_arrow_table()


def comparable(table: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(plain(value) for value in row.values()) for row in table.to_pylist())


def plain(value: Any) -> Any:
    match value:
        case datetime.datetime():
            return value.date()
        case float() if math.isnan(value):
            return "NaN"
        case bool() | int() | None | str() | datetime.date():
            return value
        case _:
            return float(f"{float(value):.9g}")


def check(states: list[Lake], query: str) -> None:
    view = states[0].parse(query)
    kept = Kept.built(view, states[0])
    for number, lake in enumerate(states):
        if number:
            kept.refresh(states[number - 1], lake)
        assert kept.table.schema == view.stored_schema
        rows = comparable(kept.visible())
        built = Kept.built(view, lake)
        assert rows == comparable(built.visible()), f"build {number}"
        hidden = [name for name in view.hidden if "sketch" not in name]
        assert comparable(kept.table.select(hidden)) == comparable(built.table.select(hidden)), f"hidden {number}"
        if duckdb is not None:
            assert rows == comparable(duckdb_rows(lake, query)), f"DuckDB {number}"
        elif "UNNEST" not in query and "f.weight)" not in query:  # DataFusion has no ORDINALITY, and an order of NaN
            assert rows == comparable(datafusion_rows(lake, query)), f"DataFusion {number}"


@pytest.mark.thinned(4, to="full")
@pytest.mark.parametrize("known_by", KNOWN_BY)
@settings(
    max_examples=10, deadline=None, suppress_health_check=list(HealthCheck), phases=(Phase.generate,), database=None
)
@given(data=st.data())
def test_a_view_that_is_maintained_has_the_rows_of_its_query(known_by: str, data: st.DataObject) -> None:
    query = data.draw(queries())
    check(data.draw(lakes(known_by)), query)


def test_inserts_alone_are_taken_over_from_a_source_without_identity() -> None:
    lake = Lake({"db.facts": SourceSchema("db.facts", FACTS), **SMALL})
    row = dict.fromkeys(FACTS.names) | {"id": 1, "amount": 4}
    lake.insert("db.facts", row)
    later = lake.copy()
    later.insert("db.facts", row)
    kept = Kept.built(lake.parse("SELECT id, amount + 1 AS more FROM db.facts"), lake)
    kept.refresh(lake, later)
    assert kept.visible().to_pylist() == [{"id": 1, "more": 5}] * 2
    with pytest.raises(FullRefreshNeeded, match=r"db\.facts has neither row keys nor stable row ids"):
        kept.refresh(later, lake)
