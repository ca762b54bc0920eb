"""What DataFusion plans of a view's query without rows, and what its tokens alone say."""

from __future__ import annotations

import pyarrow as pa
import pytest

from deployer.platform.sql.select import (
    DEEPEST_BRACKETS,
    MOST_IN_A_ROW,
    NotOneSelect,
    NotPlanned,
    canonical_select,
    check_select,
    named_tables,
    plan_select,
)

TABLES = {
    "nyc.flights": pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            pa.field("Dist", pa.float64()),
            pa.field("carrier", pa.string()),
            pa.field("day", pa.date32()),
            pa.field("text", pa.string()),
        ]
    ),
    "nyc.names": pa.schema([("carrier", pa.string()), ("full", pa.string())]),
}
EMBED = {"embed": pa.list_(pa.float32(), 4)}

NAMED = {
    "one": ("SELECT id FROM nyc.flights", ("nyc.flights",), ()),
    "joined": (
        "select 1 from nyc.a join nyc.b on a.x = b.x left join nyc.c using (y)",
        ("nyc.a", "nyc.b", "nyc.c"),
        (),
    ),
    "with commas": ("SELECT a.x, b.y FROM nyc.a, nyc.b WHERE a.x IN (1, 2)", ("nyc.a", "nyc.b"), ()),
    "in quotes": ('SELECT x FROM "NYC"."Flights"', ("NYC.Flights",), ()),
    "a bare name": ("SELECT x FROM flights", (), ("flights",)),
    "a name of WITH": ("WITH x AS (SELECT id FROM nyc.flights) SELECT * FROM x", ("nyc.flights",), ()),
    "FROM in a function": ("SELECT extract(year FROM f.day) AS y FROM nyc.flights AS f", ("nyc.flights",), ()),
    "in a comment": ("SELECT x -- FROM nyc.b\nFROM nyc.a", ("nyc.a",), ()),
    "a subquery": ("SELECT x FROM (SELECT x FROM nyc.a) AS s", ("nyc.a",), ()),
    "a union": ("SELECT x FROM nyc.a UNION ALL SELECT x FROM nyc.b", ("nyc.a", "nyc.b"), ()),
}


@pytest.mark.parametrize(("query", "full", "bare"), NAMED.values(), ids=NAMED)
def test_tables_are_those_after_from_and_join(query: str, full: tuple[str, ...], bare: tuple[str, ...]) -> None:
    found = named_tables(query)
    assert (found.full, found.bare) == (full, bare)


NOT_ONE = {
    "no SELECT": ("UPDATE nyc.a SET x = 1", "does not begin with SELECT"),
    "two statements": ("SELECT 1; SELECT 2", "the end of a statement"),
    "an open quote": ("SELECT 'x FROM nyc.a", "without its other half"),
    "a placeholder": ("SELECT $1 FROM nyc.a", "does not have"),
    "deep brackets": (f"SELECT {'(' * (DEEPEST_BRACKETS + 1)}", "brackets are inside of each other"),
    "a long chain": ("SELECT " + "x + " * MOST_IN_A_ROW + "1", "in a row"),
}


@pytest.mark.parametrize(("query", "why"), NOT_ONE.values(), ids=NOT_ONE)
def test_what_is_not_one_select_is_refused_by_its_tokens(query: str, why: str) -> None:
    with pytest.raises(NotOneSelect, match=why):
        check_select(query)


PLANNED = {
    "columns and expressions": (
        'SELECT id, "Dist" / 60 AS hours FROM nyc.flights WHERE day IS NOT NULL',
        {"id": ("nyc.flights.id",), "hours": ("nyc.flights.Dist",)},
        {"nyc.flights": ("Dist", "day", "id")},
    ),
    "a join": (
        "SELECT f.id, upper(n.full) AS name FROM nyc.flights AS f JOIN nyc.names AS n ON f.carrier = n.carrier",
        {"id": ("nyc.flights.id",), "name": ("nyc.names.full",)},
        {"nyc.flights": ("carrier", "id"), "nyc.names": ("carrier", "full")},
    ),
    "groups": (
        'SELECT carrier, count(*) AS n, sum("Dist") AS far FROM nyc.flights GROUP BY carrier',
        {"carrier": ("nyc.flights.carrier",), "n": (), "far": ("nyc.flights.Dist",)},
        {"nyc.flights": ("Dist", "carrier")},
    ),
    "a union": (
        "SELECT carrier AS c FROM nyc.flights UNION ALL SELECT full FROM nyc.names",
        {"c": ("nyc.flights.carrier", "nyc.names.full")},
        {"nyc.flights": ("carrier",), "nyc.names": ("full",)},
    ),
    "a function in a function": (
        "SELECT embed(concat(text, carrier), embed(text)) AS v FROM nyc.flights",
        {"v": ("nyc.flights.carrier", "nyc.flights.text")},
        {"nyc.flights": ("carrier", "text")},
    ),
}


@pytest.mark.parametrize(("query", "lineage", "reads"), PLANNED.values(), ids=PLANNED)
def test_columns_are_planned_with_what_they_are_made_of(
    query: str, lineage: dict[str, tuple[str, ...]], reads: dict[str, tuple[str, ...]]
) -> None:
    found = plan_select(query, TABLES, EMBED)
    named = {name: tuple(f"{table}.{column}" for table, column in of) for name, of in found.lineage.items()}
    assert found.schema.names == list(lineage)
    assert (named, dict(found.reads)) == (lineage, reads)


def test_types_and_nullability_are_those_of_the_query() -> None:
    found = plan_select("SELECT id, count(*) AS n, embed(min(text)) AS v FROM nyc.flights GROUP BY id", TABLES, EMBED)
    assert found.schema.types == [pa.int64(), pa.int64(), pa.list_(pa.float32(), 4)]
    assert [field.nullable for field in found.schema] == [False, False, True]


NOT_PLANNED = {
    "a column": ("SELECT idd FROM nyc.flights", "no table that it reads has a column `idd`"),
    "a function": ("SELECT frobnicate(id) AS x FROM nyc.flights", "invalid function 'frobnicate'"),
    "its syntax": ("SELECT id FROM nyc.flights WHERE", "the SQL cannot be read"),
    "a statement": ("WITH x AS (SELECT 1) INSERT INTO nyc.flights SELECT * FROM x", "SQL|not"),
}


@pytest.mark.parametrize(("query", "why"), NOT_PLANNED.values(), ids=NOT_PLANNED)
def test_what_cannot_be_planned_is_refused_with_the_reason(query: str, why: str) -> None:
    with pytest.raises(NotPlanned, match=why):
        plan_select(query, TABLES, EMBED)


def test_queries_are_the_same_that_differ_only_in_how_they_are_written() -> None:
    one = 'SELECT  id,\n  "Dist" -- far\nFROM nyc.flights'
    assert canonical_select(one) == canonical_select('select "id", "Dist" from "nyc".flights')
    assert canonical_select(one) != canonical_select("SELECT id, dist FROM nyc.flights")
