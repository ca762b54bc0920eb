"""Conditions that somebody else writes: none leaves the brackets that deployer puts it into."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deployer.errors import InvalidInput
from deployer.platform.sql.one_expression import LONGEST, NotOneExpression, check_one_expression
from deployer.tables.read.table import Table
from tests.tables.lakes import Lake, flights


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Table]:
    lake = Lake(Path(tmp_path_factory.mktemp("lake")))
    lake.table()
    lake.ingest(lake.file(flights(60)))
    found = lake.open()
    yield found
    found.close()


BREAKING = [
    "1=1) OR (1=1",
    "1=1); drop",
    "1=1;",
    "1=1)",
    "(1=1",
    "1=1) -- ",
    "1=1 -- a comment",
    "1=1 /* ) OR ( */",
    "1=1 # a comment",
    "flight = 1 AS foo",
    "1=1 LIMIT 1",
    "1=1 GROUP BY flight",
    "1=1 ORDER BY flight",
    "1=1 UNION SELECT 1",
    "1=1, 2=2",
    "1=1) OR carrier IN ('AA'",
    "carrier = $$x) OR (1=1$$",
    "carrier = $q$x) OR (1=1$q$",
    "carrier = E'\\') OR (1=1 OR carrier = \\''",
    "carrier = N'x) OR (1=1'",
    "carrier = r'x) OR (1=1'",
    "carrier = 'x') OR ('1'='1'",
    "carrier = 'x",
    'carrier = "x) OR (1=1',
    "`carrier) OR (1=1",
    "flight = ?",
    "flight = :x",
    "[1) OR (1=1]",
    "(1=1]",
    "1=1\x00) OR (1=1",
    "1=1\u200b) OR (1=1",
    "{fn now()}",
    "",
    "  ",
]


@pytest.mark.parametrize("where", BREAKING)
def test_what_is_more_than_one_expression_is_refused(where: str, table: Table) -> None:
    """F19: `1=1) OR (1=1` voided the restriction by keys, and what followed `1=1)` was silently left unread."""
    for keys in ([("AA",)], []):
        with pytest.raises(InvalidInput, match=r"the condition .* (is not one SQL expression|cannot be used)"):
            table.scan(where, keys=keys)


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("1=1) OR (1=1", r"it has `\)` without its other half at character 4"),
        ("flight = 1 AS foo", r"it has a name for the value \(`AS`\) at character 12"),
        ("flight = 1; drop", r"the end of a statement \(`;`\) at character 11"),
        ("flight = 1 LIMIT 5", r"it has `LIMIT` where the end of the expression is expected at character 12"),
    ],
)
def test_the_error_says_what_and_where(where: str, says: str, table: Table) -> None:
    """F19: a person sees which character is wrong."""
    with pytest.raises(InvalidInput, match=says):
        table.scan(where)


PIECES = ("1=1", "carrier = 'B6'", "flight", " OR ", " AND ", "(", ")", "'", '"', "`", ";", "--", "/*", "*/", "$$", ",")
MORE = (" ", "\n", "[", "]", "NOT ", "E'", "\\", "''", "''''", "x'", "1", "=", "::", "LIMIT 1", "IN (", "$q$", "#", "{")


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(PIECES + MORE), min_size=1, max_size=9).map("".join))
def test_no_text_widens_what_keys_restrict(table: Table, where: str) -> None:
    """F19: whatever is written, rows have the key that was asked for, or there is an error."""
    try:
        found = table.scan(where, ["carrier"], keys=[("AA",)]).to_table()
    except InvalidInput:
        return
    assert set(found["carrier"].to_pylist()) <= {"AA"}


@pytest.mark.parametrize(
    "where",
    [
        "carrier = 'it''s' OR carrier = 'a)b' OR carrier = 'x -- y; /* */'",
        "`flight` IN (1, 2, -3) AND NOT (delay IS NULL)",
        "delay BETWEEN -1 AND 5 AND CAST(flight AS BIGINT) > 1.5e3",
        "carrier LIKE 'A%' AND at > TIMESTAMP '2013-07-04 18:00:00'",
        "flight IN (" + ", ".join(map(str, range(20_000))) + ")",
        " OR ".join(f"flight = {number}" for number in range(500)),
        "carrier\n=\n'AA'",
    ],
)
def test_a_condition_is_used_as_before(where: str, table: Table) -> None:
    """F19: what is one expression works, also where it looks as if it were not."""
    table.scan(where, keys=[("AA",)]).to_table()


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("+".join(["1"] * 2_000), "more than 250 operators that depend on each other"),
        ("1" + "::bigint" * 2_000, "more than 250 operators"),
        (" OR ".join(["a=1"] * 3_000), "more than 250 operators"),
        ("a" + " BETWEEN 1 AND 2" * 40, "more than 250 operators"),
        ("(" * 30 + "1" + ("+1" * 20 + ")") * 30, "more than 250 operators"),
        (" OR ".join(["a=" + "+".join(["1"] * 100)] * 200), "more than 10,000 names and operators"),
        ("a IN (" + "1," * LONGEST + "1)", "more than 1,000,000 characters"),
    ],
)
def test_an_expression_that_would_end_the_process_is_refused(where: str, says: str) -> None:
    """F24: a chain of 1,000 operators overflows the stack of parser and planner, which ends the process (SIGSEGV)."""
    with pytest.raises(NotOneExpression, match=says):
        check_one_expression(where)
