"""What is parsed of a view's query, and what is rejected with which message."""
# ruff: noqa: S608 (the queries are put together from texts of this module)

from __future__ import annotations

import pyarrow as pa
import pytest

from deployer.errors import InvalidInput, NotFound
from deployer.views.query.model import FunctionSignature, SourceSchema, ViewQuery
from deployer.views.query.parsing.parse import parse_view
from deployer.views.query.parsing.rejections import POSSIBLE, function_kinds

FLIGHTS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("carrier", pa.string()),
        ("distance", pa.int32()),
        ("delay", pa.float64()),
        ("at", pa.timestamp("us", "UTC")),
        ("stops", pa.list_(pa.struct([("code", pa.string()), ("minutes", pa.int16())]))),
        ("place", pa.struct([("gate", pa.string())])),
        ("Tail", pa.string()),
        pa.field("photo", pa.large_binary(), metadata={"lance-encoding:blob": "true"}),
    ]
)
CARRIERS = pa.schema([pa.field("code", pa.string(), nullable=False), ("name", pa.string()), ("country", pa.string())])
SCHEMAS = {
    each.table: each
    for each in (
        SourceSchema("nyc.flights", FLIGHTS, ("id",), unique=True),
        SourceSchema("nyc.carriers", CARRIERS, ("code",), unique=True),
        SourceSchema("nyc.notes", pa.schema([("id", pa.int64()), ("text", pa.string())])),
        SourceSchema("nyc.logs", pa.schema([("id", pa.int64()), ("text", pa.string())]), stable_row_ids=True),
        SourceSchema("nyc.pairs", pa.schema([("a", pa.int64()), ("b", pa.string())]), ("a", "b"), unique=True),
    )
}
FUNCTIONS = {
    "tidy": FunctionSignature(("text",), "scalar", pa.string()),
    "chunks": FunctionSignature(("text",), "scalar", pa.list_(pa.string())),
    "parts": FunctionSignature(("text",), "scalar", pa.struct([("first", pa.string()), ("rest", pa.string())])),
}


def schema_of(table: str) -> SourceSchema:
    if table not in SCHEMAS:
        raise NotFound(f"there is no table {table!r}")
    return SCHEMAS[table]


def parsed(query: str) -> ViewQuery:
    return parse_view(query, schema_of, FUNCTIONS)


F = "FROM nyc.flights"
NOT_MAINTAINED = {
    "window function": (f"SELECT id, rank() OVER (ORDER BY id) AS r {F}", "a window function (OVER) at character 19"),
    "DISTINCT": (f"SELECT DISTINCT carrier {F}", "SELECT DISTINCT at character 8"),
    "ORDER BY": (f"SELECT id {F} ORDER BY id", "ORDER BY at character 28"),
    "LIMIT": (f"SELECT id {F} LIMIT 5", "LIMIT"),
    "OFFSET": (f"SELECT id {F} OFFSET 5", "OFFSET"),
    "FETCH": (f"SELECT id {F} FETCH FIRST 5 ROWS ONLY", "FETCH"),
    "HAVING": (f"SELECT carrier, count(*) AS n {F} GROUP BY carrier HAVING count(*) > 1", "HAVING at"),
    "QUALIFY": (f"SELECT id {F} QUALIFY 1 = 1", "QUALIFY"),
    "WINDOW": (f"SELECT id {F} WINDOW w AS (ORDER BY id)", "a WINDOW clause"),
    "subquery in FROM": ("SELECT id FROM (SELECT id FROM nyc.flights) AS f", "a subquery at character 17"),
    "subquery in WHERE": (f"SELECT id {F} WHERE id IN (SELECT id FROM nyc.logs)", "a subquery"),
    "EXISTS": (f"SELECT id {F} WHERE EXISTS (SELECT 1 FROM nyc.logs)", "a subquery"),
    "scalar subquery": (f"SELECT (SELECT 1) AS one {F}", "a subquery"),
    "WITH": ("WITH a AS (SELECT 1) SELECT * FROM a", "WITH at character 1"),
    "now": (f"SELECT id, now() AS n {F}", "now(), whose value changes, at character 12"),
    "random": (f"SELECT id {F} WHERE random() < 0.5", "random(), whose value changes,"),
    "uuid": (f"SELECT uuid() AS u {F}", "uuid(), whose value changes,"),
    "current_date": (f"SELECT id {F} WHERE CAST(at AS DATE) = current_date", "current_date, whose value changes,"),
    "UNION": (f"SELECT id {F} UNION SELECT id FROM nyc.logs", "UNION without ALL"),
    "UNION DISTINCT": (f"SELECT id {F} UNION DISTINCT SELECT id FROM nyc.logs", "UNION without ALL"),
    "INTERSECT": (f"SELECT id {F} INTERSECT SELECT id FROM nyc.logs", "INTERSECT"),
    "EXCEPT": (f"SELECT id {F} EXCEPT SELECT id FROM nyc.logs", "EXCEPT"),
    "GROUP BY in UNION ALL": (
        f"SELECT carrier, count(*) AS n {F} GROUP BY carrier UNION ALL SELECT text, id FROM nyc.logs",
        "GROUP BY in a part of UNION ALL",
    ),
    "right join": (f"SELECT id {F} RIGHT JOIN nyc.carriers ON carrier = code", "RIGHT JOIN"),
    "full join": (f"SELECT id {F} FULL OUTER JOIN nyc.carriers ON carrier = code", "FULL OUTER JOIN"),
    "cross join": (f"SELECT id {F} CROSS JOIN nyc.carriers", "CROSS JOIN"),
    "natural join": (f"SELECT id {F} NATURAL JOIN nyc.carriers", "NATURAL JOIN"),
    "semi join": (f"SELECT id {F} LEFT SEMI JOIN nyc.carriers ON carrier = code", "LEFT SEMI JOIN"),
    "USING": (f"SELECT id {F} JOIN nyc.carriers USING (code)", "USING"),
    "comma": (f"SELECT f.id {F} AS f, nyc.carriers", "tables with a comma between them"),
    "join without key": (
        "SELECT f.id FROM nyc.flights AS f JOIN nyc.logs AS l ON f.id = l.id",
        "a join with nyc.logs that is not by its unique row keys",
    ),
    "join by a part of the keys": (
        "SELECT f.id FROM nyc.flights AS f JOIN nyc.pairs AS p ON f.id = p.a",
        "a join with nyc.pairs that is not by its unique row keys",
    ),
    "join by another column": (f"SELECT id {F} JOIN nyc.carriers ON carrier = name", "not by its unique row keys"),
    "join by more than =": (
        f"SELECT id {F} JOIN nyc.carriers ON carrier = code AND distance > length(name)",
        "a join on `distance > length(name)`",
    ),
    "count of distinct": (f"SELECT carrier, count(DISTINCT id) AS n {F} GROUP BY carrier", "count(DISTINCT …)"),
    "another aggregate": (f"SELECT median(delay) AS m {F}", "the aggregate median"),
    "ordered aggregate": (f"SELECT first_value(id ORDER BY at) AS m {F}", "an aggregate that depends on the order"),
    "ROLLUP": (f"SELECT carrier, count(*) AS n {F} GROUP BY ROLLUP(carrier)", "GROUP BY ROLLUP"),
    "aggregate in WHERE": (f"SELECT carrier {F} WHERE count(*) > 1", "the aggregate count in WHERE"),
    "nested aggregate": (f"SELECT sum(count(*)) AS n {F} GROUP BY carrier", "the aggregate count in WHERE"),
    "LEFT JOIN UNNEST": (f"SELECT id {F} LEFT JOIN UNNEST(stops) AS s ON true", "LEFT JOIN UNNEST"),
    "two UNNEST": (
        f"SELECT id {F} CROSS JOIN UNNEST(stops) AS s CROSS JOIN UNNEST(stops) AS t",
        "a second UNNEST",
    ),
    "table function": ("SELECT value FROM generate_series(1, 5)", "generate_series"),
}


@pytest.mark.parametrize(("query", "named"), NOT_MAINTAINED.values(), ids=NOT_MAINTAINED)
def test_what_cannot_be_maintained_is_named_with_what_can(query: str, named: str) -> None:
    with pytest.raises(InvalidInput) as error:
        parsed(query)
    assert named in error.value.what
    assert error.value.what.startswith("the query has parts that cannot be maintained from changes: ")
    assert error.value.remedy.endswith(POSSIBLE)
    assert error.value.remedy != POSSIBLE  # it says what to do instead


def test_everything_that_cannot_be_maintained_is_named_at_once() -> None:
    with pytest.raises(InvalidInput) as error:
        parsed(f"SELECT DISTINCT id, now() AS n, count(DISTINCT id) OVER () AS c {F} ORDER BY id LIMIT 1")
    for named in ("SELECT DISTINCT", "now()", "OVER", "ORDER BY", "LIMIT"):
        assert named in error.value.what
    assert "approx_distinct" in error.value.remedy


WRONG = {
    "empty": ("", "it is empty"),
    "not a query": ("DELETE FROM nyc.flights", "it begins with 'DELETE'"),
    "two statements": (f"SELECT id {F}; SELECT id {F}", "a character that no query has (`;`) at character 27"),
    "no FROM": ("SELECT 1 AS one", "it has no FROM"),
    "no table": ("SELECT id FROM", "the name of a table is missing"),
    "bracket": (f"SELECT (id {F}", "`(` without its other half at character 8"),
    "quote": (f"SELECT 'id {F}", "a quote without its other half"),
    "placeholder": (f"SELECT id {F} WHERE id = $1", "a placeholder"),
    "bare table": ("SELECT id FROM flights", "`flights` is not the full name of a table"),
    "unknown table": ("SELECT id FROM nyc.flihgts", "there is no table 'nyc.flihgts'"),
    "unknown column": (f"SELECT distanc {F}", "there is no column 'distanc'; did you mean distance?"),
    "unknown column in a join": (
        "SELECT f.id, c.nam FROM nyc.flights AS f JOIN nyc.carriers AS c ON f.carrier = c.code",
        "there is no column 'c.nam'; did you mean name?",
    ),
    "column with a capital": (f"SELECT tail {F}", 'did you mean "Tail"? Write names'),
    "unknown alias": (f"SELECT g.id {F} AS f", "there is no table or column 'g' in the query; its tables are f"),
    "ambiguous": (
        "SELECT id FROM nyc.flights AS f JOIN nyc.pairs AS p ON f.id = p.a AND f.carrier = p.b JOIN nyc.carriers AS c "
        "ON c.code = f.carrier WHERE name = 'x' AND b = 'y' AND f.id = 1 UNION ALL SELECT f.id FROM nyc.flights AS f "
        "JOIN nyc.flights AS g ON g.id = f.id WHERE carrier = 'UA'",
        "the column 'carrier' is in several tables; write f.carrier or g.carrier",
    ),
    "unknown function": (f"SELECT uper(carrier) AS c {F}", "invalid function 'uper'"),
    "wrong type": (f"SELECT carrier - delay AS c {F}", "`carrier - delay`: "),
    "not a condition": (f"SELECT id {F} WHERE distance + 1", "`distance + 1` in WHERE is of type"),
    "no name": (f"SELECT distance * 2 {F}", "the column `distance * 2` has no name; name it: distance * 2 AS name"),
    "same name": (f"SELECT id, distance AS id {F}", "two columns have the name 'id'"),
    "hidden name": (f"SELECT id AS __id {F}", "the column '__id' begins with '__'"),
    "null": (f"SELECT NULL AS nothing {F}", "`NULL` has no type; give it one: CAST(NULL AS BIGINT)"),
    "blob": (f"SELECT photo {F}", "the column 'photo' of nyc.flights is a blob"),
    "not grouped": (
        f"SELECT carrier, id, count(*) AS n {F} GROUP BY carrier",
        "the column 'id' is neither in GROUP BY nor in an aggregate; add it to GROUP BY, or aggregate it: min(id)",
    ),
    "a part of a key": (
        f"SELECT distance + 1 * 2 AS d {F} GROUP BY distance + 1",
        "the column 'distance' is neither in GROUP BY nor in an aggregate",
    ),
    "group by a float": (f"SELECT delay, count(*) AS n {F} GROUP BY delay", "`delay` in GROUP BY is of type double"),
    "group by a struct": (f"SELECT count(*) AS n {F} GROUP BY place", "`place` in GROUP BY is of type struct"),
    "group by number": (f"SELECT carrier, count(*) AS n {F} GROUP BY 3", "there is no column 3 in SELECT"),
    "sum of text": (f"SELECT sum(carrier) AS s {F}", "sum of `carrier`, which is of type string"),
    "min of a list": (f"SELECT min(stops) AS s {F}", "min of `stops`, which is of type list"),
    "UNION ALL of other types": (
        f"SELECT id {F} UNION ALL SELECT code FROM nyc.carriers",
        "column 'id' of UNION ALL is int64 in part 1, and string in part 2; convert one: CAST(… AS …)",
    ),
    "UNION ALL of more columns": (
        f"SELECT id {F} UNION ALL SELECT id, text FROM nyc.logs",
        "part 2 of UNION ALL has 2",
    ),
    "UNNEST of no list": (f"SELECT id {F} CROSS JOIN UNNEST(carrier) AS c", "`carrier` in UNNEST is of type string"),
    "arguments": (f"SELECT tidy(carrier, id) AS c {F}", "tidy has 1 parameters (text), and 2 values are given"),
    "function without values": (f"SELECT tidy() AS c {F}", "tidy is called without values"),
    "same table twice": (f"SELECT 1 AS a {F} JOIN nyc.flights ON id = id", "two tables have the name 'flights'"),
    "instant": (f"SELECT id {F} WHERE at > TIMESTAMP '2024-02-31T00:00:00Z'", "is not an instant"),
}


@pytest.mark.parametrize(("query", "message"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_in_a_query_is_said_with_a_remedy(query: str, message: str) -> None:
    with pytest.raises((InvalidInput, NotFound)) as error:
        parsed(query)
    assert message in str(error.value)


ROW_VIEWS: dict[str, tuple[str, str, tuple[str, ...], tuple[str, ...], bool]] = {
    "key selected": (f"SELECT id, delay {F}", "id delay", ("id",), ("id",), True),
    "key renamed": (f"SELECT id AS flight {F}", "flight", ("flight",), ("flight",), True),
    "key computed": (f"SELECT id + 1 AS next {F}", "next __source_key_0", ("__source_key_0",), (), False),
    "no identity": ("SELECT text FROM nyc.notes", "text", (), (), False),
    "row ids": ("SELECT text FROM nyc.logs", "text __source_row_id", ("__source_row_id",), (), False),
    "all columns": ("SELECT * FROM nyc.carriers", "code name country", ("code",), ("code",), True),
    "all columns of one": (
        "SELECT f.id, c.* FROM nyc.flights f LEFT JOIN nyc.carriers c ON f.carrier = c.code",
        "id code name country",
        ("id",),
        ("id",),
        True,
    ),
    "keys of two columns": ("SELECT b, a FROM nyc.pairs", "b a", ("a", "b"), ("a", "b"), True),
    "items": (f"SELECT id, s.code {F} CROSS JOIN UNNEST(stops) AS s", "id code", ("id",), ("id",), False),
    "items with their places": (
        f"SELECT id, s.code, s.place {F}, UNNEST(stops) WITH ORDINALITY AS s(code, minutes, place)",
        "id code place",
        ("id",),
        ("id", "place"),
        True,
    ),
    "chunks": (
        "SELECT l.id, c.c AS chunk FROM nyc.logs AS l CROSS JOIN UNNEST(chunks(text)) AS c",
        "id chunk __source_row_id",
        ("__source_row_id",),
        (),
        False,
    ),
    "union of keys of one type": (
        "SELECT id FROM nyc.flights UNION ALL SELECT distance + id FROM nyc.flights",
        "id __branch __source_key_0",
        ("__branch", "__source_key_0"),
        (),
        False,
    ),
    "union of several keys": (
        "SELECT carrier FROM nyc.flights UNION ALL SELECT b FROM nyc.pairs",
        "carrier __branch __source_key_0 __source_key_1",
        ("__branch", "__source_key_0", "__source_key_1"),
        (),
        False,
    ),
}


@pytest.mark.parametrize(("query", "stored", "identity", "keys", "unique"), ROW_VIEWS.values(), ids=ROW_VIEWS)
def test_row_views_are_known_by_what_their_source_is_known_by(
    query: str, stored: str, identity: tuple[str, ...], keys: tuple[str, ...], unique: bool
) -> None:
    view = parsed(query)
    assert view.stored_schema.names == stored.split()
    assert (view.identity, view.default_keys, view.unique_keys) == (identity, keys, unique)
    assert not view.grouped


GROUP_VIEWS = {
    "nullable key": (f"SELECT carrier, count(*) AS n {F} GROUP BY carrier", "carrier:string n:int64", ()),
    "key that is not null": (f"SELECT id, count(*) AS n {F} GROUP BY id", "id:int64 n:int64", ("id",)),
    "key that is not selected": (
        f"SELECT count(*) AS n {F} GROUP BY carrier",
        "n:int64 __group_0:string",
        (),
    ),
    "by number": (f"SELECT id % 2 AS odd, count(*) AS n {F} GROUP BY 1", "odd:int64 n:int64", ("odd",)),
    "by name": (f"SELECT id % 2 AS odd, count(*) AS n {F} GROUP BY odd", "odd:int64 n:int64", ("odd",)),
    "key in an expression": (
        f"SELECT upper(carrier) || '!' AS c, count(*) AS n {F} GROUP BY upper(carrier)",
        "c:string n:int64 __group_0:string",
        (),
    ),
    "without GROUP BY": (f"SELECT count(*) AS n {F}", "n:int64 __group:int8", ()),
    "sum of small numbers": (
        f"SELECT sum(distance) AS s {F}",
        "s:int64 __group:int8 __rows:int64 __count_1:int64",
        (),
    ),
    "sum of large numbers": (
        f"SELECT sum(id) AS s {F}",
        "s:int64 __group:int8 __rows:int64 __sum_1:decimal128(38, 0)",
        (),
    ),
    "mean": (
        f"SELECT avg(distance) AS m, sum(distance) AS s, count(distance) AS n {F}",
        "m:double s:int64 n:int64 __group:int8 __rows:int64",
        (),
    ),
    "least": (f"SELECT min(at) AS m {F}", "m:timestamp[us, tz=UTC] __group:int8 __rows:int64", ()),
    "sketch": (f"SELECT approx_distinct(at) AS m {F}", "m:int64 __group:int8 __rows:int64 __sketch_1:binary", ()),
    "function of aggregates": (
        f"SELECT sum(distance) / count(*) AS m {F}",
        "m:int64 __group:int8 __rows:int64 __count_1:int64 __sum_2:int64",
        (),
    ),
}


@pytest.mark.parametrize(("query", "stored", "keys"), GROUP_VIEWS.values(), ids=GROUP_VIEWS)
def test_group_views_keep_states_beside_what_is_selected(query: str, stored: str, keys: tuple[str, ...]) -> None:
    view = parsed(query)
    fields = [f"{each.name}:{each.type}" for each in view.stored_schema]
    assert " ".join(fields) == stored
    assert (view.default_keys, view.grouped) == (keys, True)


def test_lineage_goes_through_functions_lists_and_aggregates() -> None:
    view = parsed(
        "SELECT f.id, parts(c.name).first AS word, s.minutes + f.distance AS sum FROM nyc.flights AS f "
        "LEFT JOIN nyc.carriers AS c ON c.code = f.carrier CROSS JOIN UNNEST(stops) AS s"
    )
    assert view.lineage == {
        "id": (("nyc.flights", "id"),),
        "word": (("nyc.carriers", "name"),),
        "sum": (("nyc.flights", "distance"), ("nyc.flights", "stops")),
    }
    assert view.functions == ("parts",)
    grouped = parsed(f"SELECT upper(carrier) AS c, sum(distance) FILTER (WHERE delay > 0) AS s {F} GROUP BY 1")
    assert grouped.lineage["c"] == (("nyc.flights", "carrier"),)
    assert set(grouped.lineage["s"]) == {("nyc.flights", "distance"), ("nyc.flights", "delay")}


def test_a_source_is_read_with_the_columns_and_the_condition_that_the_query_needs() -> None:
    view = parsed(
        "SELECT f.id, c.name FROM nyc.flights AS f JOIN nyc.carriers AS c ON f.carrier = c.code AND c.country = 'us' "
        "WHERE f.\"Tail\" = 'x' AND f.delay > 0 AND c.name <> 'y' AND tidy(f.carrier) = 'z'"
    )
    flights, carriers = view.sources
    assert (flights.columns, flights.small) == (("id", "carrier", "delay", "Tail"), False)
    assert flights.where == "(`Tail` = 'x') AND (`delay` > 0)"
    assert (carriers.columns, carriers.where, carriers.small) == (("code", "name", "country"), "", True)


def test_columns_that_may_not_be_null_stay_so() -> None:
    view = parsed("SELECT f.id, c.code FROM nyc.flights AS f LEFT JOIN nyc.carriers AS c ON c.code = f.carrier")
    assert [each.nullable for each in view.schema] == [False, True]


def test_changes_that_need_a_full_refresh_are_told_with_their_reason() -> None:
    reason = "nyc.notes has neither row keys nor stable row ids, so rows of the view cannot be identified again"
    joined = "SELECT n.id, c.name FROM nyc.notes AS n {} JOIN nyc.carriers AS c ON c.code = n.text"
    of_notes = {("nyc.notes", "update"): reason, ("nyc.notes", "delete"): reason}
    of_carriers = {("nyc.carriers", "update"): reason, ("nyc.carriers", "delete"): reason}
    assert parsed("SELECT id FROM nyc.notes").full_refresh == of_notes
    assert parsed(joined.format("INNER")).full_refresh == {**of_notes, **of_carriers}
    assert parsed(joined.format("LEFT")).full_refresh == {**of_notes, **of_carriers, ("nyc.carriers", "insert"): reason}
    assert parsed("SELECT count(*) AS n FROM nyc.notes").full_refresh == {}
    assert parsed("SELECT id FROM nyc.logs").full_refresh == {}


def test_words_of_sql_and_names_of_columns_are_told_apart() -> None:
    view = parsed(
        "SELECT -- the year\n extract(year FROM at) AS year, CAST(delay AS DECIMAL(9, 1)) AS d, place.gate AS gate,\n"
        "  CASE WHEN carrier LIKE 'U%' OR delay IS NOT NULL THEN 1 END AS c, at + INTERVAL '1' day AS next,\n"
        f"  nyc.flights.distance AS far, /* both */ flights.place['gate'] AS same {F}\n"
        "WHERE carrier IS DISTINCT FROM 'x' AND delay BETWEEN 1 AND 2 AND (id = 1 OR id = 2);"
    )
    assert [str(each.type) for each in view.schema] == [
        "int32",
        "decimal128(9, 1)",
        "string",
        "int64",
        "timestamp[us, tz=UTC]",
        "int32",
        "string",
    ]


def test_volatile_functions_and_aggregates_are_those_of_datafusion() -> None:
    kinds = function_kinds()
    assert {"now", "random", "uuid"} <= kinds.volatile
    assert {"median", "array_agg", "stddev", "count"} <= kinds.aggregates
    assert not kinds.volatile & {"upper", "abs", "date_trunc"}
